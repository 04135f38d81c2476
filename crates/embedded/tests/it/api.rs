//! The Rust interface of the library.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use reveille_embedded::{Closed, Durability, Embedded, EmbeddedError, EmbeddedOptions, Progress};

use crate::home::Home;
use crate::program::{BINARY, Program};
use crate::sql::ask;

/// Closing waits for the server's end; this long is for ever.
const PATIENCE: Duration = Duration::MAX;

#[expect(clippy::disallowed_methods, reason = "PATH is where PostgreSQL may be")]
fn options(home: &Home) -> EmbeddedOptions {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let options = EmbeddedOptions::new(home.data(), home.path().join("cache"), [BINARY]).search_path(path);
    options.durability(Durability::Disposable)
}

#[test]
fn closing_stops_the_server_when_no_other_program_uses_it() {
    let home = Home::new();
    let embedded = Embedded::start(&options(&home)).unwrap();
    assert_eq!(ask(&embedded.connection_string("postgres"), "select 1"), "1");
    assert_eq!(home.postmaster(), Some(embedded.pid().cast_signed()));

    let closed = embedded.close(PATIENCE).unwrap();

    assert_eq!(closed, Closed::Stopped);
    assert!(home.was_shut_down());
    home.until_nothing_is_left();
}

#[test]
fn closing_leaves_the_server_to_others() {
    let home = Home::with_cluster();
    let embedded = Embedded::start(&options(&home)).unwrap();
    let other = Program::start(&home);

    let closed = embedded.close(PATIENCE).unwrap();

    assert_eq!(closed, Closed::StillUp);
    assert_eq!(ask(other.connection(), "select 1"), "1");
}

#[test]
fn two_handles_of_one_program_are_two_users() {
    let home = Home::with_cluster();
    let first = Embedded::start(&options(&home)).unwrap();
    let second = Embedded::start(&options(&home)).unwrap();
    assert_eq!(first.pid(), second.pid());

    assert_eq!(first.close(PATIENCE).unwrap(), Closed::StillUp);

    assert_eq!(ask(&second.connection_string("postgres"), "select 1"), "1");
    assert_eq!(second.close(PATIENCE).unwrap(), Closed::Stopped);
}

#[test]
fn closing_is_not_misled_by_children_that_the_program_starts_meanwhile() {
    let home = Home::with_cluster();
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        // Until its `exec`, a child has a copy of every open file.
        scope.spawn(|| {
            while !is_done.load(Ordering::Relaxed) {
                Command::new("true").status().unwrap();
            }
        });

        let closed: Vec<Closed> = (0..10)
            .map(|_| Embedded::start(&options(&home)).and_then(|embedded| embedded.close(PATIENCE)).unwrap())
            .collect();

        is_done.store(true, Ordering::Relaxed);
        assert_eq!(closed, [Closed::Stopped; 10]);
    });
}

#[test]
fn dropping_gives_the_server_up_and_it_can_be_had_again() {
    let home = Home::with_cluster();
    for _ in 0..3 {
        drop(Embedded::start(&options(&home)).unwrap());
    }

    home.until_nothing_is_left();

    assert!(home.was_shut_down());
}

#[test]
fn a_lingering_server_is_still_up_after_closing() {
    let home = Home::with_cluster();
    let embedded = Embedded::start(&options(&home).linger(Duration::from_secs(2))).unwrap();

    assert_eq!(embedded.close(Duration::from_millis(100)).unwrap(), Closed::StillUp);

    home.until_nothing_is_left();
}

#[test]
fn a_search_for_binaries_that_takes_long_is_no_part_of_the_time_to_start() {
    let home = Home::with_cluster();
    let first = Embedded::start(&options(&home)).unwrap();
    let real = ask(&first.connection_string("postgres"), "select setting from pg_config where name = 'BINDIR'");
    first.close(PATIENCE).unwrap();
    let slow = home.path().join("slow");
    fs::create_dir(&slow).unwrap();
    for (name, delay) in [("postgres", "[ \"$1\" = --version ] && sleep 6"), ("initdb", "")] {
        fs::write(slow.join(name), format!("#!/bin/sh\n{delay}\nexec {real}/{name} \"$@\"\n")).unwrap();
        fs::set_permissions(slow.join(name), fs::Permissions::from_mode(0o755)).unwrap();
    }
    fs::set_permissions(&slow, fs::Permissions::from_mode(0o755)).unwrap();

    let started = Embedded::start(&options(&home).binaries(&slow).start_timeout(Duration::from_secs(5)));

    assert_eq!(started.unwrap().close(PATIENCE).unwrap(), Closed::Stopped);
}

#[test]
fn a_start_that_takes_too_long_names_the_log() {
    let home = Home::new();

    let refused = Embedded::start(&options(&home).start_timeout(Duration::ZERO)).unwrap_err();

    assert!(matches!(refused, EmbeddedError::NotReady { .. }));
    assert!(refused.is_unreachable());
    assert!(refused.sentence().contains("postgres.log"), "{}", refused.sentence());
    home.until_nothing_is_left();
}

#[test]
fn a_supervisor_that_is_not_there_is_named() {
    let home = Home::new();
    let cache = home.path().join("cache");

    let refused =
        Embedded::start(&EmbeddedOptions::new(home.data(), cache, ["/nowhere/reveille-postgres"])).unwrap_err();

    assert!(refused.sentence().contains("cannot run /nowhere/reveille-postgres"), "{}", refused.sentence());
}

#[test]
fn logs_are_for_their_owner_alone_also_where_a_version_before_left_them_open() {
    let home = Home::with_cluster();
    let logs = ["postgres.log", "supervisor.log"].map(|name| home.data().join(name));
    for log in &logs {
        fs::write(log, "from before\n").unwrap();
        fs::set_permissions(log, fs::Permissions::from_mode(0o644)).unwrap();
    }

    let _embedded = Embedded::start(&options(&home)).unwrap();

    for log in &logs {
        let mode = fs::metadata(log).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600, "{}", log.display());
        assert!(fs::read_to_string(log).unwrap().starts_with("from before\n"));
    }
}

/// An operator reads the program's own log, not the supervisor's.
#[test]
fn a_program_learns_why_its_server_stays_down() {
    let home = Home::with_cluster();
    let (reports, down) = std::sync::mpsc::sync_channel(1);
    let options = options(&home).on_progress(move |progress| {
        if let Progress::Down { .. } = progress {
            let _ = reports.try_send(progress.to_string());
        }
    });
    let embedded = Embedded::start(&options).unwrap();
    // Without this file no server starts.
    fs::remove_file(home.pgdata().join("global/pg_control")).unwrap();

    crate::fault_harness::signal(embedded.pid().cast_signed(), nix::sys::signal::Signal::SIGKILL);

    let why = down.recv_timeout(Duration::from_secs(60)).unwrap();
    assert!(why.starts_with("the private PostgreSQL is down: "), "{why}");
    assert!(why.contains("pg_control"), "{why}");
}
