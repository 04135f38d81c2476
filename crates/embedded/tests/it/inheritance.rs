//! What a program inherits (descriptors, environment, signals, umask, working directory) never
//! reaches the server.

use std::path::Path;
use std::process::Command;

use nix::sys::signal::Signal;

use crate::fault_harness::{GONE_WITHIN, is_free, signal, until};
use crate::home::Home;
use crate::program::{Program, Started, disposable, durable, with_default, within};
use crate::sql::{Session, ask};

#[test]
fn locks_that_a_program_was_started_under_are_free_again_when_it_ends() {
    let home = Home::with_cluster();
    let (low, high) = (home.path().join("low.lock"), home.path().join("high.lock"));
    let script = "low=$1 high=$2; shift 2; exec 9>$low 242>$high; flock -n 9 && flock -n 242 && exec \"$@\"";
    let mut under_locks = Command::new("bash");
    under_locks.args(["-c", script, "sh"]).args([&low, &high]);
    let plain = disposable(&home);
    under_locks.arg(plain.get_program()).args(plain.get_args());
    let starter = Program::spawn(&home, &mut under_locks);
    let other = Program::start(&home);
    let postmaster = home.postmaster();
    assert!(!is_free(&low) && !is_free(&high));

    starter.kill();

    until(GONE_WITHIN, "the caller's locks", || is_free(&low) && is_free(&high));
    assert_eq!(ask(other.connection(), "select 1"), "1");
    assert_eq!(home.postmaster(), postmaster);
}

#[test]
fn a_pipe_that_a_program_was_started_with_is_closed_when_it_ends() {
    let home = Home::with_cluster();
    // `cat` ends when the last copy of the pipe's other end is closed: the test harness's own way
    // to hang.
    let script = format!("exec 5> >(cat >/dev/null; echo closed > {}/closed); exec \"$@\"", home.path().display());
    let starter = Program::spawn(&home, &mut within(&["bash"], &script, &disposable(&home)));
    let _other = Program::start(&home);

    starter.kill();

    until(GONE_WITHIN, "the pipe to close", || home.path().join("closed").exists());
}

#[test]
fn the_environment_of_a_program_does_not_change_what_the_server_does() {
    let home = Home::new();
    let elsewhere = home.path().join("elsewhere");
    let mut command = durable(&home);
    command.env("PGDATA", &elsewhere).env("PGPORT", "6000").env("PGHOST", "example.invalid");
    command.env("PGOPTIONS", "-c fsync=off").env("PGUSER", "mallory").env("PGTZ", "Asia/Tokyo");
    command
        .env("LC_ALL", "de_DE.UTF-8")
        .env("LANG", "de_DE.UTF-8")
        .env("TZ", "Asia/Tokyo")
        .env("PGCLIENTENCODING", "LATIN1");

    let program = Program::spawn(&home, &mut command);

    let session = Session::open(program.connection()).unwrap();
    let shown = |name: &str| session.one(&format!("show {name}"));
    assert_eq!((shown("fsync"), shown("port")), ("on".into(), "5432".into()));
    assert_eq!((shown("lc_messages"), shown("server_encoding")), ("C".into(), "UTF8".into()));
    assert!(["UTC", "Etc/UTC", "GMT"].contains(&&*shown("timezone")), "{}", shown("timezone"));
    assert_eq!(shown("data_directory"), home.pgdata().to_str().unwrap());
    assert!(!elsewhere.exists());
}

#[test]
fn a_program_under_a_strict_umask_gets_a_server() {
    let home = Home::named("not/yet/there");

    let program = Program::spawn(&home, &mut within(&["sh"], "umask 077; exec \"$@\"", &disposable(&home)));

    assert_eq!(ask(program.connection(), "select 1"), "1");
}

#[test]
fn a_background_job_with_its_signals_ignored_is_stopped_all_the_same() {
    let home = Home::with_cluster();
    // What a shell without job control does to `command &`.
    let ignoring = within(&["sh"], "trap '' INT QUIT HUP TERM; exec \"$@\"", &disposable(&home));
    for _ in 0..3 {
        let mut command = within(&["sh"], "exec \"$@\"", &ignoring);
        let started = Started::launch(&home, &mut command);
        // As early as can be: the server may not have set its signal handlers yet.
        until(GONE_WITHIN, "a server", || home.postmaster().is_some());

        drop(started);

        home.until_nothing_is_left();
    }
}

#[test]
fn the_server_pins_neither_the_working_directory_nor_the_terminal() {
    let home = Home::with_cluster();
    let cwd = home.path().join("cwd");
    std::fs::create_dir(&cwd).unwrap();
    // The hang-up below must mean something, also when these tests run under nohup.
    let mut command = with_default("HUP", &disposable(&home));
    let program = Program::spawn(&home, command.current_dir(&cwd));

    let (supervisor, postmaster) = (home.supervisor(), home.postmaster().unwrap());
    for pid in [supervisor, postmaster] {
        let at = std::fs::read_link(format!("/proc/{pid}/cwd")).unwrap();
        assert!(!at.starts_with(&cwd), "{}", at.display());
        let group = nix::unistd::getpgid(Some(nix::unistd::Pid::from_raw(pid))).unwrap();
        assert_eq!(group.as_raw(), pid, "a process group of its own");
    }
    assert!(Path::new(&format!("/proc/{}", program.pid())).exists());
    signal(program.pid(), Signal::SIGHUP);
    home.until_nothing_is_left();
}

/// What a shell without job control does to `command &`, and what nohup does.
const IGNORING: &str = "trap '' INT QUIT HUP; exec \"$@\"";

#[test]
fn ctrl_c_ends_a_program_that_was_started_with_it_ignored() {
    let home = Home::with_cluster();
    let mut program = Program::spawn(&home, &mut within(&["sh"], IGNORING, &disposable(&home)));

    signal(program.pid(), Signal::SIGINT);

    program.wait();
    home.until_nothing_is_left();
    assert!(home.was_shut_down(), "{}", home.log());
}

#[test]
fn a_program_under_nohup_outlives_its_terminal() {
    let home = Home::with_cluster();
    let program = Program::spawn(&home, &mut within(&["sh"], IGNORING, &disposable(&home)));

    signal(program.pid(), Signal::SIGHUP);

    assert_eq!(ask(program.connection(), "select 1"), "1");
    assert!(Path::new(&format!("/proc/{}", program.pid())).exists());
}
