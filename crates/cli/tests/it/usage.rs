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
