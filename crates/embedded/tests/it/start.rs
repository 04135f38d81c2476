//! Starting, joining, and stopping in peace.

use std::os::unix::fs::MetadataExt;
use std::process::Command;

use nix::unistd::geteuid;

use crate::fault_harness::{runs, signal, until};
use crate::home::Home;
use crate::program::{Program, Started, disposable, durable};
use crate::sql::{Session, ask};

#[test]
fn a_first_start_makes_a_cluster_and_a_later_one_finds_its_data() {
    let home = Home::new();
    let first = Program::spawn(&home, &mut durable(&home));
    let session = Session::open(first.connection()).unwrap();
    session.do_it("create table kept as select 42 as answer");
    assert_eq!(session.one("show fsync"), "on");
    assert_eq!(session.one("show data_checksums"), "on");
    assert_eq!(session.one("show listen_addresses"), "");
    assert_eq!(session.one("select datcollate from pg_database where datname = 'postgres'"), "C");
    drop(session);
    first.kill();
    home.until_nothing_is_left();

    let second = Program::spawn(&home, &mut durable(&home));

    assert_eq!(ask(second.connection(), "select answer from kept"), "42");
}

#[test]
fn postgres_never_runs_as_root() {
    let home = Home::new();
    let _program = Program::start(&home);

    let pid = home.postmaster().unwrap();
    let owner = std::fs::metadata(format!("/proc/{pid}")).unwrap().uid();
    let cluster = std::fs::metadata(home.pgdata()).unwrap();

    assert_ne!(owner, 0);
    assert_eq!(cluster.uid(), owner);
    assert_eq!(cluster.mode() & 0o777, 0o700);
    assert!(geteuid().is_root() || owner == geteuid().as_raw());
}

#[test]
fn six_programs_at_once_share_one_server_on_a_new_directory() {
    let home = Home::new();

    start_six(&home);
}

#[test]
fn six_programs_at_once_share_one_server_on_a_stopped_cluster() {
    let home = Home::with_cluster();

    start_six(&home);
}

#[track_caller]
fn start_six(home: &Home) {
    let started: Vec<Started> = (0..6).map(|_| Started::launch(home, &mut disposable(home))).collect();
    let programs: Vec<Program> = started.into_iter().map(Started::ready).collect();

    let postmaster = "select split_part(pg_read_file('postmaster.pid'), chr(10), 1)";
    let mut pids: Vec<String> = programs.iter().map(|program| ask(program.connection(), postmaster)).collect();
    pids.dedup();
    assert_eq!(pids.len(), 1, "{pids:?}");
    assert_eq!(home.log().matches("starting PostgreSQL").count(), home.log().matches("ready to accept").count());
    home.supervisor();
    drop(programs);
    home.until_nothing_is_left();
    assert!(home.was_shut_down());
}

#[test]
fn the_server_stays_until_the_last_program_has_gone() {
    let home = Home::with_cluster();
    let first = Program::start(&home);
    let second = Program::start(&home);
    let postmaster = home.postmaster().unwrap();

    first.kill();

    assert_eq!(ask(second.connection(), "select 1"), "1");
    assert_eq!(home.postmaster(), Some(postmaster));
    second.kill();
    home.until_nothing_is_left();
    assert!(home.was_shut_down());
}

#[test]
fn a_program_that_comes_while_the_server_stops_gets_a_server() {
    let home = Home::with_cluster();
    let mut before = Program::start(&home);
    for _ in 0..5 {
        let old = home.postmaster().unwrap();
        before.kill();
        let next = Program::start(&home);
        // Either it was in time to keep the old one, or it has a new one; both answer, and one
        // supervisor is in charge.
        assert_eq!(ask(next.connection(), "select 1"), "1");
        let new = home.postmaster().unwrap();
        until(std::time::Duration::from_secs(15), "the old server's end", || new == old || !runs(old));
        before = next;
    }
    home.supervisor();
}

#[test]
fn a_term_signal_to_the_process_group_shuts_down_cleanly() {
    signal_to_the_group(nix::sys::signal::Signal::SIGTERM);
}

#[test]
fn ctrl_c_shuts_down_cleanly() {
    signal_to_the_group(nix::sys::signal::Signal::SIGINT);
}

fn signal_to_the_group(what: nix::sys::signal::Signal) {
    use std::os::unix::process::CommandExt;

    let home = Home::with_cluster();
    let mut command: Command = disposable(&home);
    let mut program = Program::spawn(&home, command.process_group(0));
    let session = Session::open(program.connection()).unwrap();
    session.do_it("create table kept as select 1");

    signal(-program.pid(), what);

    program.wait();
    home.until_nothing_is_left();
    assert!(home.was_shut_down(), "{}", home.log());
}
