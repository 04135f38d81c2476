//! `kill -9` of everything that can be killed: nothing that was acknowledged is lost, nothing is
//! left behind.

use nix::sys::signal::Signal;

use crate::fault_harness::{
    UP_WITHIN, kill_at_once, processes_of, runs, signal, state_of, supervisors_of, until, until_some,
};
use crate::home::Home;
use crate::program::{Program, durable};
use crate::sql::{Inserter, Session, ask, rows};

#[test]
fn a_killed_program_leaves_a_stopped_server_and_every_acknowledged_row() {
    let home = Home::with_cluster();
    let program = Program::spawn(&home, &mut durable(&home));
    let inserter = Inserter::start(program.connection());
    inserter.until_acknowledged(50);

    program.kill();

    let acknowledged = inserter.broken_off();
    home.until_nothing_is_left();
    assert!(home.was_shut_down(), "{}", home.log());
    let next = Program::spawn(&home, &mut durable(&home));
    assert_kept(acknowledged, rows(next.connection()));
}

#[test]
fn a_killed_postmaster_comes_back_under_a_live_program_with_every_acknowledged_row() {
    let home = Home::with_cluster();
    let program = Program::spawn(&home, &mut durable(&home));
    let inserter = Inserter::start(program.connection());
    inserter.until_acknowledged(50);
    let old = home.postmaster().unwrap();

    signal(old, Signal::SIGKILL);

    let acknowledged = inserter.broken_off();
    let session = until_some(UP_WITHIN, "a new server", || Session::open(program.connection()).ok());
    assert_kept(acknowledged, session.one("select count(*) from trial").parse().unwrap());
    assert_ne!(home.postmaster(), Some(old));
    assert!(home.log().contains("was not properly shut down; automatic recovery in progress"), "{}", home.log());
}

#[test]
fn a_killed_backend_costs_no_acknowledged_row_and_not_the_server() {
    let home = Home::with_cluster();
    let program = Program::spawn(&home, &mut durable(&home));
    let inserter = Inserter::start(program.connection());
    inserter.until_acknowledged(50);
    let postmaster = home.postmaster();
    let victim = ask(program.connection(), "select pid from pg_stat_activity where query like 'insert into trial%'");

    signal(victim.parse().unwrap(), Signal::SIGKILL);

    let acknowledged = inserter.broken_off();
    let session = until_some(UP_WITHIN, "the end of the recovery", || Session::open(program.connection()).ok());
    assert_kept(acknowledged, session.one("select count(*) from trial").parse().unwrap());
    assert_eq!(home.postmaster(), postmaster);
}

#[test]
fn everything_killed_at_once_leaves_every_acknowledged_row_to_the_next_start() {
    let home = Home::with_cluster();
    let program = Program::spawn(&home, &mut durable(&home));
    let inserter = Inserter::start(program.connection());
    inserter.until_acknowledged(50);

    kill_everything(&home);

    let acknowledged = inserter.broken_off();
    let next = Program::spawn(&home, &mut durable(&home));
    assert_kept(acknowledged, rows(next.connection()));
}

#[test]
fn a_server_that_is_not_reaped_does_not_block_the_next_one() {
    let home = Home::with_cluster();
    let program = Program::spawn(&home, &mut durable(&home));
    Session::open(program.connection()).unwrap().do_it("create table trial as select 1 as n");
    let (postmaster, supervisor) = (home.postmaster().unwrap(), home.supervisor());
    signal(supervisor, Signal::SIGSTOP);
    until(UP_WITHIN, "the supervisor to be stopped", || state_of(supervisor) == Some('T'));
    signal(postmaster, Signal::SIGKILL);
    until(UP_WITHIN, "the postmaster to be a zombie", || state_of(postmaster) == Some('Z'));

    // Its parent gone, the zombie may stay with process 1 for as long as that one likes.
    signal(supervisor, Signal::SIGKILL);

    let session = until_some(UP_WITHIN, "a new server", || Session::open(program.connection()).ok());
    assert_eq!(session.one("select count(*) from trial"), "1");
}

#[test]
fn a_server_that_dies_again_and_again_comes_back_each_time() {
    let home = Home::with_cluster();
    let program = Program::start(&home);
    for _ in 0..3 {
        let old = home.postmaster().unwrap();
        signal(old, Signal::SIGKILL);
        until(UP_WITHIN, "the postmaster's end", || !runs(old));
        until_some(UP_WITHIN, "a new server", || Session::open(program.connection()).ok());
    }

    program.kill();

    home.until_nothing_is_left();
    assert!(home.was_shut_down());
}

#[test]
fn a_stopped_supervisor_disturbs_no_program_and_stops_the_server_when_it_goes_on() {
    let home = Home::with_cluster();
    let first = Program::start(&home);
    let supervisor = home.supervisor();
    signal(supervisor, Signal::SIGSTOP);
    until(UP_WITHIN, "the supervisor to be stopped", || state_of(supervisor) == Some('T'));

    let second = Program::start(&home);

    assert_eq!(ask(second.connection(), "select 1"), "1");
    first.kill();
    second.kill();
    signal(supervisor, Signal::SIGCONT);
    home.until_nothing_is_left();
    assert!(home.was_shut_down());
}

/// Kills program, supervisor and every process of the server.
fn kill_everything(home: &Home) {
    let all = processes_of(home.data());
    assert!(all.len() > 4 && !supervisors_of(home.data()).is_empty(), "{all:?}");
    kill_at_once(&all);
    home.until_nothing_is_left();
}

/// The row under way when the connection broke may or may not be there.
#[track_caller]
fn assert_kept(acknowledged: i64, found: i64) {
    assert!((acknowledged..=acknowledged + 1).contains(&found), "{acknowledged} acknowledged, {found} found");
}
