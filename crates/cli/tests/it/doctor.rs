//! The doctor's findings, as lines, as JSON, as exit codes.

use reveille_testkit::TestDatabase;

use crate::support::Home;

#[tokio::test]
async fn a_healthy_database_has_a_line_for_every_question() {
    let db = TestDatabase::new().await;

    let ran = Home::new().run(&["doctor", "--database-url", &db.url()]).await;

    ran.assert_code(0);
    for (verdict, name) in [
        ("ok", "postgres"),
        ("ok", "schema"),
        ("ok", "listen"),
        ("ok", "clock"),
        ("ok", "connections"),
        ("ok", "stranded"),
    ] {
        let found = ran.stdout.lines().any(|line| line.starts_with(&format!("{verdict:4}  {name:12}  ")));
        assert!(found, "{name}: {}", ran.stdout);
    }
    // The test server does not sync: a warning, not a failure.
    assert!(ran.stdout.contains("warn  durability    fsync is off"), "{}", ran.stdout);
    assert!(ran.stdout.contains("; switch it on unless this is a test"), "{}", ran.stdout);
}

#[tokio::test]
async fn a_failure_is_code_1_with_its_remedy() {
    let db = TestDatabase::empty().await;

    let ran = Home::new().run(&["doctor", "--database-url", &db.url()]).await;

    ran.assert_code(1);
    let line = "fail  schema        schema reveille holds no Reveille tables; run `reveille migrate up`";
    assert!(ran.stdout.lines().any(|found| found == line), "{}", ran.stdout);
}

#[tokio::test]
async fn findings_and_facts_are_there_for_programs() {
    let db = TestDatabase::new().await;

    let ran = Home::new().run(&["doctor", "--json", "--database-url", &db.url()]).await;

    ran.assert_code(0);
    let seen = ran.json();
    assert_eq!(seen["verdict"], "warn");
    assert_eq!(seen["facts"]["durability"]["fsync"], false);
    assert!(seen["facts"]["listen_echo_ms"].as_f64().unwrap() > 0.0);
    assert!(seen["facts"]["schema_version"].as_i64().unwrap() > 0);
    assert!(seen["facts"]["connections"]["allowed"].as_i64().unwrap() > 0);
    assert_eq!(seen["facts"]["stranded"], 0);
    for finding in seen["findings"].as_array().unwrap() {
        assert!(["ok", "warn", "fail"].contains(&finding["verdict"].as_str().unwrap()), "{finding}");
        assert!(finding["name"].is_string() && finding["sentence"].is_string() && finding["remedy"].is_string());
    }
}
