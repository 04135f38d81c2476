//! Files of servers that are no more: they name process ids that may be anybody's by now.

use std::fs;
use std::process::{Child, Command, Stdio};

use nix::sys::signal::Signal;

use crate::fault_harness::{UP_WITHIN, kill_at_once, processes_of, runs, signal, state_of, until};
use crate::home::Home;
use crate::program::{Program, refusal};
use crate::sql::{Session, ask};

#[test]
fn a_stale_pid_file_that_names_a_foreign_process_is_no_obstacle() {
    let home = crashed_cluster();
    let foreign = Foreign::spawn(&["tail", "-f", "/dev/null"]);
    blame(&home, foreign.pid());

    let program = Program::start(&home);

    assert_eq!(ask(program.connection(), "select n from trial"), "7");
    program.kill();
    home.until_nothing_is_left();
    assert!(runs(foreign.pid()));
}

#[test]
fn a_stale_pid_file_that_names_another_server_is_no_obstacle_and_that_server_lives_on() {
    let other_home = Home::with_cluster();
    let other = Program::start(&other_home);
    let session = Session::open(other.connection()).unwrap();
    let home = crashed_cluster();
    blame(&home, other_home.postmaster().unwrap());

    let program = Program::start(&home);

    assert_eq!(ask(program.connection(), "select n from trial"), "7");
    program.kill();
    home.until_nothing_is_left();
    assert_eq!(session.one("select 1"), "1");
}

#[test]
fn a_stale_pid_file_that_names_a_zombie_is_no_obstacle() {
    let home = crashed_cluster();
    let zombie = Foreign::spawn(&["true"]);
    until(UP_WITHIN, "a zombie", || state_of(zombie.pid()) == Some('Z'));
    blame(&home, zombie.pid());

    let program = Program::start(&home);

    assert_eq!(ask(program.connection(), "select n from trial"), "7");
}

#[test]
fn a_live_server_whose_locks_were_deleted_keeps_its_pid_file() {
    let home = Home::with_cluster();
    let program = Program::start(&home);
    let session = Session::open(program.connection()).unwrap();
    let pid_file = fs::read(home.pgdata().join("postmaster.pid")).unwrap();
    for lock in ["users.lock", "super.lock", "alive.lock"] {
        fs::remove_file(home.data().join(lock)).unwrap();
    }

    let refused = refusal(&home, &mut crate::program::disposable(&home));

    refused.says(1, &["not a data directory of Reveille"]);
    assert_eq!(fs::read(home.pgdata().join("postmaster.pid")).unwrap(), pid_file);
    assert_eq!(session.one("select 1"), "1");
    drop(session);
    program.kill();
    until(UP_WITHIN, "the end of the server", || processes_of(home.data()).is_empty());
}

#[test]
fn a_live_server_whose_proof_of_life_was_deleted_is_not_doubled() {
    let home = Home::with_cluster();
    let program = Program::start(&home);
    let session = Session::open(program.connection()).unwrap();
    let (postmaster, supervisor) = (home.postmaster().unwrap(), home.supervisor());
    fs::remove_file(home.data().join("alive.lock")).unwrap();

    signal(supervisor, Signal::SIGKILL);

    until(UP_WITHIN, "another supervisor", || runs(home.supervisor()) && home.supervisor() != supervisor);
    assert_eq!(session.one("select 1"), "1");
    assert_eq!(home.postmaster(), Some(postmaster));
    drop(session);
    // A user who deletes the proof must end the server too; what counts is that there never were
    // two servers.
    signal(postmaster, Signal::SIGINT);
    until(UP_WITHIN, "the end of the server", || !runs(postmaster));
    until(UP_WITHIN, "a new server", || Session::open(program.connection()).is_ok());
    assert_eq!(home.log().matches("starting PostgreSQL").count(), 2, "{}", home.log());
}

/// A cluster with one row, whose server was killed with everything around it.
fn crashed_cluster() -> Home {
    let home = Home::with_cluster();
    let program = Program::start(&home);
    let session = Session::open(program.connection()).unwrap();
    session.do_it("create table trial as select 7 as n");
    session.do_it("checkpoint");
    kill_at_once(&processes_of(home.data()));
    home.until_nothing_is_left();
    assert!(home.postmaster().is_some());
    home
}

/// Makes the files of the dead server name this process.
fn blame(home: &Home, pid: i32) {
    let dead = home.postmaster().unwrap().to_string();
    for file in [home.pgdata().join("postmaster.pid"), home.data().join("run/.s.PGSQL.5432.lock")] {
        let text = fs::read_to_string(&file).unwrap();
        assert!(text.starts_with(&dead));
        fs::write(&file, text.replacen(&dead, &pid.to_string(), 1)).unwrap();
    }
}

/// A process that has nothing to do with anything.
struct Foreign(Child);

impl Foreign {
    fn spawn(command: &[&str]) -> Self {
        Self(Command::new(command[0]).args(&command[1..]).stdin(Stdio::null()).spawn().unwrap())
    }

    fn pid(&self) -> i32 {
        self.0.id().cast_signed()
    }
}

impl Drop for Foreign {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
