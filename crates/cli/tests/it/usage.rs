//! Right and wrong command lines.

use std::fs::File;

use crate::support::Home;

#[tokio::test]
async fn the_version_names_the_range_of_postgresql() {
    let ran = Home::new().run(&["--version"]).await;

    ran.assert_code(0);
    assert_eq!(ran.stdout, format!("reveille {} (PostgreSQL 15 to 18)\n", env!("CARGO_PKG_VERSION")));
}

#[tokio::test]
async fn help_goes_to_standard_output_with_precedence_and_exit_codes() {
    let ran = Home::new().run(&["--help"]).await;

    ran.assert_code(0);
    for word in ["REVEILLE_CONFIG", "/etc/reveille/config.toml", "3 database or server unreachable", "serve", "doctor"]
    {
        assert!(ran.stdout.contains(word), "{word}: {}", ran.stdout);
    }
}

#[tokio::test]
async fn data_that_cannot_be_written_is_a_failure() {
    let home = Home::new();
    for typed in [&["migrate", "sql"][..], &["config", "show"], &["config", "default"], &["--help"]] {
        // Linux has a device that is always full.
        let Ok(full) = File::options().write(true).open("/dev/full") else { return };

        let ran = home.command(typed).stdout(full).spawn().unwrap().wait_with_output().await.unwrap();

        assert_eq!(ran.status.code(), Some(1), "{typed:?}");
        let sentence = String::from_utf8(ran.stderr).unwrap();
        assert!(sentence.starts_with("reveille: cannot write to standard output: "), "{typed:?}: {sentence}");
    }
}

#[tokio::test]
async fn wrong_use_ends_with_a_suggestion_and_code_2() {
    let home = Home::new();
    for (typed, expected) in [
        (&["frobnicate"][..], "unrecognized subcommand 'frobnicate'"),
        (&["doctor", "--jsn"], "--json"),
        (&["serve", "--listen"], "--listen"),
        (&["migrate", "sql", "--from", "x"], "invalid value 'x'"),
        (&["migrate"], "Usage: reveille migrate"),
        (&[], "Usage: reveille"),
    ] {
        let ran = home.run(typed).await;

        ran.assert_code(2);
        assert!(ran.stderr.contains(expected), "{ran:?}");
        assert_eq!(ran.stdout, "");
    }
}

#[tokio::test]
async fn a_failure_with_json_is_json_on_standard_error_with_the_same_code() {
    let home = Home::new();
    for (typed, exit, code, message) in [
        (&["queues", "--json", "--server", "http://127.0.0.1:1"][..], 3, "unreachable", "no server answers at "),
        (&["--json", "queues", "--server", "http://127.0.0.1:1"], 3, "unreachable", "no server answers at "),
        (&["doctor", "--json", "--database-url", "mysql://x"], 2, "wrong_use", "[database]: the database URL"),
        (&["queues", "delete", "mail", "--json"], 1, "refused", "this deletes the queue mail"),
        (&["--json", "frobnicate"], 2, "wrong_use", "unrecognized subcommand 'frobnicate'"),
        (&["--json", "pop"], 2, "wrong_use", "the following required arguments were not provided: <QUEUE>"),
        (&["--json"], 2, "wrong_use", "'reveille' requires a subcommand"),
    ] {
        let ran = home.run(typed).await;

        ran.assert_code(exit);
        assert_eq!(ran.stdout, "", "{typed:?}");
        let error = &serde_json::from_str::<serde_json::Value>(&ran.stderr).expect("one object")["error"];
        assert_eq!(error["code"], code, "{typed:?}: {ran:?}");
        assert!(error["message"].as_str().is_some_and(|text| text.starts_with(message)), "{typed:?}: {ran:?}");
    }
}

#[tokio::test]
async fn a_payload_that_looks_like_a_flag_does_not_ask_for_json() {
    let ran = Home::new().run(&["push", "mail", "--server", "http://127.0.0.1:1", "--", "--json"]).await;

    assert!(ran.stderr.starts_with("reveille: "), "{ran:?}");
}

#[tokio::test]
async fn flags_of_every_command_may_stand_before_it_and_before_its_step() {
    let home = Home::new();
    for typed in [
        &["--json", "config", "show"][..],
        &["config", "--json", "show"],
        &["config", "show", "--json"],
        &["--json", "--log-level", "warn", "config", "show"],
    ] {
        let ran = home.run(typed).await;

        ran.assert_code(0);
        assert!(ran.json()["settings"].is_array(), "{typed:?}");
    }
    for typed in [&["queues", "--server", "http://127.0.0.1:1", "show", "mail"][..], &["jobs", "--json", "show", "4"]] {
        let ran = home.run(typed).await;

        assert!(!ran.stderr.contains("cannot be used with"), "{ran:?}");
        assert_ne!(ran.code, Some(2), "{ran:?}");
    }
}

#[tokio::test]
async fn a_filter_of_a_list_before_another_command_is_refused() {
    for (typed, flag) in [
        (&["dlq", "--queue", "mail", "delete", "--all"][..], "--queue before 'delete' filters the list of 'dlq' only"),
        (&["queues", "--search", "a", "show", "mail"], "--search before 'show' filters the list of 'queues' only"),
        (&["groups", "--queue", "mail", "show", "audit"], "--queue before 'show' filters the list of 'groups' only"),
    ] {
        let ran = Home::new().run(typed).await;

        ran.assert_code(2);
        assert!(ran.stderr.contains(flag), "{ran:?}");
    }
}

#[tokio::test]
async fn the_help_of_every_command_shows_examples() {
    let home = Home::new();
    let help = home.run(&["--help"]).await.stdout;
    let list = help.split("Commands:\n").nth(1).and_then(|rest| rest.split("\n\n").next()).unwrap();
    let commands: Vec<&str> = list.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert!(commands.len() > 12, "{commands:?}");

    // `postgres` has the help of another program; `help` is made by clap.
    for command in commands.into_iter().filter(|name| !["postgres", "help"].contains(name)) {
        let ran = home.run(&[command, "--help"]).await;

        assert!(ran.stdout.contains("\nExamples:\n  "), "{command}: {}", ran.stdout);
    }
}

#[tokio::test]
async fn localhost_is_an_address_to_listen_on() {
    for listen in ["localhost:7000", ":7000"] {
        let ran = Home::new().run(&["config", "show", "--listen", listen]).await;

        ran.assert_code(0);
    }
}
