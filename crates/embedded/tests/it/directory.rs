//! Data directories with paths that are long, odd, or reached another way.

use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::symlink;
use std::process::Command;

use crate::home::Home;
use crate::program::{BINARY, Program, disposable, refusal};
use crate::sql::ask;

#[test]
fn a_path_too_long_for_a_socket_works_through_a_short_one() {
    let home = Home::named(&format!("{}/{}", "long".repeat(20), "longer".repeat(20)));

    let program = Program::start(&home);

    assert_eq!(ask(program.connection(), "show data_directory"), home.pgdata().to_str().unwrap());
    assert!(program.connection().starts_with("host='/tmp/reveille-"), "{}", program.connection());
    let sockets = socket_dir(program.connection());
    drop(program);
    home.until_nothing_is_left();
    std::fs::remove_dir(sockets).unwrap();
}

#[test]
fn a_path_with_spaces_quotes_and_other_scripts_works() {
    let home = Home::named("with space, 'quotes', \"more\", a \\ and a ж");

    let program = Program::start(&home);

    assert_eq!(ask(program.connection(), "show data_directory"), home.pgdata().to_str().unwrap());
    let sockets = socket_dir(program.connection());
    drop(program);
    home.until_nothing_is_left();
    let second = Home::named("it's \"one\" \\ host");
    assert_eq!(ask(Program::start(&second).connection(), "select 1"), "1");
    std::fs::remove_dir(sockets).unwrap();
}

#[test]
fn two_names_for_one_directory_are_one_server() {
    let home = Home::with_cluster();
    let first = Program::start(&home);
    let link = home.path().join("link");
    symlink(home.data(), &link).unwrap();

    let mut through_link = Command::new(BINARY);
    let second = Program::spawn(&home, through_link.arg("run").arg("--data-dir").arg("link").current_dir(home.path()));

    assert_eq!(first.connection(), second.connection());
    home.supervisor();
}

#[test]
fn a_path_that_cannot_be_written_in_one_line_is_refused() {
    let home = Home::new();
    let not_utf8 = std::ffi::OsString::from_vec(b"caf\xe9".to_vec());
    for (name, why) in [("two\nlines".into(), "control character"), (not_utf8, "UTF-8"), (deep(), "768 bytes")] {
        let path = home.path().join(name);

        let refused = refusal(&home, Command::new(BINARY).arg("run").arg("--data-dir").arg(&path));

        refused.says(1, &["cannot be a data directory", why, "choose another path"]);
    }
}

fn deep() -> std::ffi::OsString {
    vec!["deep".repeat(50); 4].join("/").into()
}

#[test]
fn a_directory_that_others_make_at_the_same_time_is_not_foreign() {
    let home = Home::new();
    for round in 0..10 {
        let dir = home.path().join(format!("data-{round}"));
        let refuse_late = |_: u32| {
            let mut command = Command::new(BINARY);
            command.args(["run", "--no-download", "--binaries", "/nonexistent", "--data-dir"]).arg(&dir);
            crate::program::Started::launch(&home, &mut command)
        };

        // All of them pass the check of the directory before they find that they have no binaries.
        let started: Vec<_> = (0..6).map(refuse_late).collect();

        for refused in started {
            refused.refusal().says(1, &["/nonexistent holds no usable PostgreSQL"]);
        }
    }
}

#[test]
fn a_file_system_of_its_own_may_have_its_lost_and_found() {
    let home = Home::new();
    std::fs::create_dir_all(home.data().join("lost+found")).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o711);
    std::fs::set_permissions(home.data(), mode).unwrap();

    let program = Program::spawn(&home, &mut disposable(&home));

    assert_eq!(ask(program.connection(), "select 1"), "1");
}

/// The `host` of a connection string without quotes inside.
fn socket_dir(connection: &str) -> String {
    connection.split('\'').nth(1).unwrap().to_owned()
}
