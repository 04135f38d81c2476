//! A server that cannot run for a while, or whose directory is gone.

use std::fs;

use nix::sys::signal::Signal;

use crate::fault_harness::{UP_WITHIN, signal, supervisors_of, threads_of, until, until_some};
use crate::home::Home;
use crate::program::{Program, disposable, refusal};
use crate::sql::Session;

#[test]
fn a_server_that_cannot_start_for_a_while_comes_back_by_itself() {
    let home = Home::with_cluster();
    let program = Program::start(&home);
    let postmaster = home.postmaster().unwrap();
    // Read at the next start only.
    let configuration = home.pgdata().join("postgresql.conf");
    let good = fs::read_to_string(&configuration).unwrap();
    fs::write(&configuration, format!("{good}\nwork_mem = banana\n")).unwrap();
    signal(postmaster, Signal::SIGKILL);
    let given_up = || home.supervisor_log().matches("keeps exiting").count();
    until(UP_WITHIN, "the first supervisor and the one after it to give up", || given_up() >= 2);

    fs::write(&configuration, good).unwrap();

    until_some(UP_WITHIN, "a new server", || Session::open(program.connection()).ok());
    program.kill();
    home.until_nothing_is_left();
    assert!(home.was_shut_down(), "{}", home.log());
}

#[test]
fn a_server_that_keeps_exiting_is_given_up_with_its_own_words() {
    let home = Home::with_cluster();

    let refused = refusal(&home, disposable(&home).args(["--setting", "work_mem=banana"]));

    refused.says(3, &["keeps exiting (5 times in a row)", "postgres.log", "FATAL:", "\"work_mem\": \"banana\""]);
    home.until_nothing_is_left();
    Program::start(&home);
}

#[test]
fn a_data_directory_that_is_deleted_under_a_live_server_is_not_made_again() {
    let home = Home::with_cluster();
    let program = Program::start(&home);
    let postmaster = home.postmaster().unwrap();
    let has_watcher = || threads_of(program.pid()).iter().any(|name| name == "reveille-embedd");
    until(UP_WITHIN, "the program's watcher", has_watcher);

    // Files may come and go while they are being deleted.
    until(UP_WITHIN, "the directory to be deleted", || {
        fs::remove_dir_all(home.data()).is_ok() || !home.data().exists()
    });
    signal(postmaster, Signal::SIGKILL);

    until(UP_WITHIN, "the supervisor to leave", || supervisors_of(home.data()).is_empty());
    until(UP_WITHIN, "the program's watcher to leave", || !has_watcher());
    assert!(!home.data().exists());
    let newcomer = Program::start(&home);
    assert_ne!(newcomer.connection(), "");
}
