//! Settings reach the server; those that would move it do not.

use std::net::TcpListener;

use crate::home::Home;
use crate::program::{Program, disposable, refusal};
use crate::sql::Session;

#[test]
fn arbitrary_settings_reach_the_server_and_the_last_of_a_name_holds() {
    let home = Home::with_cluster();
    let mut command = disposable(&home);
    command.args(["--setting", "shared_preload_libraries=pg_stat_statements"]);
    command.args(["--setting", "work_mem=5MB", "--setting", "work_mem=7MB"]);
    command.args(["--setting", "log_line_prefix=%m = [%p] ", "--setting", "fsync=on"]);

    let program = Program::spawn(&home, &mut command);

    let session = Session::open(program.connection()).unwrap();
    session.do_it("create extension pg_stat_statements");
    assert_ne!(session.one("select count(*) from pg_stat_statements"), "");
    assert_eq!(session.one("show work_mem"), "7MB");
    assert_eq!(session.one("show log_line_prefix"), "%m = [%p] ");
    assert_eq!(session.one("show fsync"), "on");
}

#[test]
fn settings_that_would_move_the_server_are_refused_before_anything_is_made() {
    let home = Home::new();
    for setting in ["port=1", "listen_addresses=*", "DATA_directory=/x", "config-file=/x", "=1"] {
        let refused = refusal(&home, disposable(&home).args(["--setting", setting]));

        refused.says(1, &["the server setting", "is refused"]);
    }
    assert!(!home.data().exists());
}

#[test]
fn over_tcp_a_password_is_needed_and_over_the_socket_none() {
    let home = Home::with_cluster();
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let program = Program::spawn(&home, disposable(&home).args(["--tcp-port", &port.to_string()]));

    let session = Session::open(program.connection()).unwrap();
    let tcp = format!("host=127.0.0.1 port={port} user=postgres dbname=postgres");

    assert!(program.connection().contains(&format!("port={port}")));
    assert_eq!(session.one("show listen_addresses"), "127.0.0.1");
    assert!(Session::open(&tcp).is_err_and(|error| format!("{error:?}").contains("password")));
    assert!(Session::open(&format!("{tcp} password=guess")).is_err());
    session.do_it("alter user postgres password 'secret'");
    assert!(Session::open(&format!("{tcp} password=guess")).is_err());
    assert_eq!(Session::open(&format!("{tcp} password=secret")).unwrap().one("select 1"), "1");
    assert_eq!(Session::open(program.connection()).unwrap().one("select 1"), "1");
}

#[test]
fn a_tcp_port_that_is_taken_is_reported_in_the_servers_words() {
    let home = Home::with_cluster();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();

    let refused = refusal(&home, disposable(&home).args(["--tcp-port", &port.to_string()]));

    refused.says(3, &["keeps exiting", "FATAL:", "could not create any TCP/IP sockets"]);
}

#[test]
fn wrong_use_is_exit_code_two() {
    let home = Home::new();
    for arguments in [
        vec!["--frobnicate"],
        vec!["--major", "many"],
        vec!["--linger", "-1"],
        vec!["--linger", "99999999999999999999999"],
        vec!["--tcp-port", "65536"],
        vec!["--setting", "work_mem"],
        vec!["--data-dir"],
        vec!["surplus"],
    ] {
        refusal(&home, disposable(&home).args(&arguments)).says(2, &["reveille-postgres: ", "; see --help"]);
    }
    for command in [&["frobnicate"][..], &[]] {
        refusal(&home, std::process::Command::new(crate::program::BINARY).args(command)).says(2, &["see --help"]);
    }
    assert!(!home.data().exists());
}

#[test]
fn a_linger_for_ever_is_a_linger() {
    let home = Home::with_cluster();
    let program = Program::spawn(&home, disposable(&home).args(["--linger", &u64::MAX.to_string()]));
    let postmaster = home.postmaster().unwrap();

    program.kill();

    assert!(crate::fault_harness::runs(postmaster));
    // Only its supervisor would end it; so the test ends both, as an administrator would.
    crate::fault_harness::signal(home.supervisor(), nix::sys::signal::Signal::SIGKILL);
    crate::fault_harness::signal(postmaster, nix::sys::signal::Signal::SIGINT);
    home.until_nothing_is_left();
}
