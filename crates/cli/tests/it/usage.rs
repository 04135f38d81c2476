//! What is typed, rightly and wrongly.

use crate::support::Home;

#[tokio::test]
async fn the_version_names_the_range_of_postgresql() {
    let ran = Home::new().run(&["--version"]).await;

    ran.assert_code(0);
    assert_eq!(ran.stdout, format!("reveille {} (PostgreSQL 15 to 18)\n", env!("CARGO_PKG_VERSION")));
}

#[tokio::test]
async fn help_goes_to_standard_output_and_tells_precedence_and_exit_codes() {
    let ran = Home::new().run(&["--help"]).await;

    ran.assert_code(0);
    for word in ["REVEILLE_CONFIG", "/etc/reveille/config.toml", "3 database unreachable", "serve", "doctor"] {
        assert!(ran.stdout.contains(word), "{word}: {}", ran.stdout);
    }
}

#[tokio::test]
async fn wrong_use_is_told_with_a_suggestion_and_code_2() {
    let home = Home::new();
    for (typed, said) in [
        (&["frobnicate"][..], "unrecognized subcommand 'frobnicate'"),
        (&["doctor", "--jsn"], "--json"),
        (&["serve", "--listen"], "--listen"),
        (&["migrate", "sql", "--from", "x"], "invalid value 'x'"),
        (&["migrate"], "Usage: reveille migrate"),
        (&[], "Usage: reveille"),
    ] {
        let ran = home.run(typed).await;

        ran.assert_code(2);
        assert!(ran.stderr.contains(said), "{ran:?}");
        assert_eq!(ran.stdout, "");
    }
}
