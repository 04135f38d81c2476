//! A killed supervisor is replaced, and the server never notices.

use nix::sys::signal::Signal;

use crate::fault_harness::{
    GONE_WITHIN, is_free, kill_at_once, processes_of, runs, signal, supervisors_of, until, until_some,
};
use crate::home::Home;
use crate::program::{Program, disposable};
use crate::sql::{Session, ask};

#[test]
fn a_killed_supervisor_is_replaced_without_another_program_joining() {
    let home = Home::with_cluster();
    let program = Program::start(&home);
    let session = Session::open(program.connection()).unwrap();
    let postmaster = home.postmaster();

    kill_supervisor(&home);

    assert_ne!(home.supervisor(), 0);
    assert_eq!(session.one("select 1"), "1");
    assert_eq!(home.postmaster(), postmaster);
    drop(session);
    program.kill();
    home.until_nothing_is_left();
    assert!(home.was_shut_down(), "{}", home.log());
}

#[test]
fn a_program_that_did_not_start_the_supervisor_replaces_it_too() {
    let home = Home::with_cluster();
    let starter = Program::start(&home);
    let joined = Program::start(&home);
    starter.kill();
    let session = Session::open(joined.connection()).unwrap();

    kill_supervisor(&home);

    home.supervisor();
    assert_eq!(session.one("select 1"), "1");
    joined.kill();
    home.until_nothing_is_left();
    assert!(home.was_shut_down(), "{}", home.log());
}

#[test]
fn of_many_programs_that_miss_their_supervisor_one_replaces_it() {
    let home = Home::with_cluster();
    let programs: Vec<Program> = (0..4).map(|_| Program::start(&home)).collect();
    let postmaster = home.postmaster();

    for _ in 0..3 {
        kill_supervisor(&home);
        home.supervisor();
    }

    assert_eq!(home.postmaster(), postmaster);
    drop(programs);
    home.until_nothing_is_left();
    assert!(home.was_shut_down(), "{}", home.log());
}

#[test]
fn a_newcomer_adopts_a_server_without_users() {
    let home = Home::with_cluster();
    let program = Program::start(&home);
    let (supervisor, postmaster) = (home.supervisor(), home.postmaster().unwrap());
    kill_at_once(&[program.pid(), supervisor]);
    // The lock, not the process: threads of one that counts as dead may still hold it.
    until(GONE_WITHIN, "the end of the supervisor", || is_free(&home.data().join("super.lock")));
    assert!(runs(postmaster));

    let newcomer = Program::start(&home);

    assert_eq!(ask(newcomer.connection(), "select 1"), "1");
    assert_eq!(home.postmaster(), Some(postmaster));
    newcomer.kill();
    home.until_nothing_is_left();
    assert!(home.was_shut_down(), "{}", home.log());
}

#[test]
fn signals_that_end_programs_do_not_end_the_supervisor() {
    let home = Home::with_cluster();
    let program = Program::start(&home);
    let supervisor = home.supervisor();
    for what in [Signal::SIGHUP, Signal::SIGINT, Signal::SIGTERM, Signal::SIGQUIT] {
        signal(supervisor, what);
    }

    program.kill();

    home.until_nothing_is_left();
    assert!(home.was_shut_down(), "{}", home.log());
    assert_eq!(home.log().matches("starting PostgreSQL").count(), 1, "{}", home.log());
}

#[test]
fn an_adopted_server_that_is_killed_comes_back() {
    let home = Home::with_cluster();
    let program = Program::start(&home);
    kill_supervisor(&home);
    let supervisor = home.supervisor();
    let postmaster = home.postmaster().unwrap();

    signal(postmaster, Signal::SIGKILL);

    until(GONE_WITHIN, "the postmaster's end", || !runs(postmaster));
    until_some(GONE_WITHIN, "a new server", || Session::open(program.connection()).ok());
    assert_eq!(home.supervisor(), supervisor);
}

#[test]
fn a_server_lingers_for_as_long_as_chosen_and_can_be_joined() {
    let home = Home::with_cluster();
    let lingering = || {
        let mut command = disposable(&home);
        command.args(["--linger", "3"]);
        command
    };
    let first = Program::spawn(&home, &mut lingering());
    let postmaster = home.postmaster();
    first.kill();

    let second = Program::spawn(&home, &mut lingering());

    assert_eq!(home.postmaster(), postmaster);
    assert_eq!(home.log().matches("ready to accept").count(), 1, "{}", home.log());
    let began = std::time::Instant::now();
    second.kill();
    home.until_nothing_is_left();
    assert!(began.elapsed() >= std::time::Duration::from_secs(3), "gone after {:?}", began.elapsed());
    assert!(home.was_shut_down());
}

/// Kills the one supervisor and waits for its end, which a watcher may already have seen.
fn kill_supervisor(home: &Home) {
    let supervisor = home.supervisor();
    signal(supervisor, Signal::SIGKILL);
    until(GONE_WITHIN, "the supervisor's end", || !supervisors_of(home.data()).contains(&supervisor));
    assert!(!processes_of(home.data()).is_empty());
}
