//! A cluster is made whole or not at all, whatever is killed meanwhile.

use nix::sys::signal::Signal;
use reveille_embedded::{Embedded, EmbeddedOptions};

use crate::fault_harness::{
    UP_WITHIN, is_halted, kill_at_once, makers_of, processes_of, runs, signal, signal_all, supervisors_of, until,
};
use crate::home::Home;
use crate::program::{Program, Started, disposable};
use crate::sql::ask;

#[test]
fn an_initdb_that_is_killed_leaves_no_cluster_and_the_next_start_makes_one() {
    let home = Home::new();
    let program = Started::launch(&home, &mut disposable(&home));
    let makers = catch_initdb(&home);

    kill_at_once(&[vec![program.pid()], supervisors_of(home.data()), makers].concat());

    home.until_nothing_is_left();
    assert!(!home.pgdata().exists());
    let next = Program::start(&home);
    assert_eq!(ask(next.connection(), "select 1"), "1");
    assert!(!home.data().join("pg.new").exists());
}

#[test]
fn an_initdb_that_outlived_its_supervisor_is_waited_for_and_does_not_spoil_the_next_one() {
    let home = Home::new();
    let program = Started::launch(&home, &mut disposable(&home));
    let orphans = catch_initdb(&home);
    let killed = home.supervisor();
    signal(killed, Signal::SIGKILL);
    until(UP_WITHIN, "another supervisor", || !runs(killed) && home.supervisor() != killed);

    signal_all(&orphans, Signal::SIGCONT);

    let program = program.ready();
    assert!(!orphans.iter().any(|pid| runs(*pid)));
    assert_eq!(ask(program.connection(), "select 1"), "1");
}

#[test]
fn a_program_that_is_killed_during_initdb_leaves_nothing_running() {
    let home = Home::new();
    let program = Started::launch(&home, &mut disposable(&home));
    let makers = catch_initdb(&home);

    drop(program);
    signal_all(&makers, Signal::SIGCONT);

    until(UP_WITHIN, "the end of everything", || processes_of(home.data()).is_empty());
    assert!(home.pgdata().exists());
    assert!(home.was_shut_down(), "{}", home.log());
}

/// Stops initdb and its children in the middle of their work.
fn catch_initdb(home: &Home) -> Vec<i32> {
    until(UP_WITHIN, "initdb at work", || home.data().join("pg.new/base").exists());
    let mut makers = Vec::new();
    until(UP_WITHIN, "initdb to be stopped", || {
        makers = makers_of(home.data());
        signal_all(&makers, Signal::SIGSTOP);
        !makers.is_empty() && makers.iter().all(|pid| is_halted(*pid))
    });
    makers
}

#[test]
fn a_supervisor_that_is_killed_whenever_it_starts_is_given_up_in_words() {
    let home = Home::new();
    let script = home.path().join("supervisor");
    std::fs::write(&script, "#!/bin/sh\nkill -9 $$\n").unwrap();
    std::fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();

    let refused = Embedded::start(&EmbeddedOptions::new(home.data(), home.path().join("cache"), [script])).unwrap_err();

    assert!(refused.is_unreachable());
    assert!(refused.sentence().contains("ended without a word (signal: 9"), "{}", refused.sentence());
}
