//! `reveille migrate`: up, status, sql and uninstall.

use reveille_testkit::TestDatabase;

use crate::support::{Home, Ran, finished};

async fn migrate(db: &TestDatabase, arguments: &[&str]) -> Ran {
    let url = db.url();
    Home::new().run(&[&["migrate"], arguments, &["--database-url", &url]].concat()).await
}

#[tokio::test]
async fn up_applies_what_is_missing_and_then_nothing() {
    let db = TestDatabase::empty().await;
    let before = migrate(&db, &["status", "--json"]).await.json();

    let first = migrate(&db, &["up", "--json"]).await;
    let second = migrate(&db, &["up"]).await;
    let after = migrate(&db, &["status", "--json"]).await.json();

    assert_eq!((&before["found"], &before["usable"]), (&0.into(), &false.into()));
    first.assert_code(0);
    assert_eq!(first.json()["migrations"], before["pending"]);
    assert_eq!(first.json()["migrations"][0]["version"], 8);
    second.assert_code(0);
    assert_eq!(second.stdout, "nothing to do: the schema is up to date\n");
    assert_eq!((&after["found"], &after["usable"]), (&after["known"], &true.into()));
    assert_eq!(after["pending"].as_array().unwrap().len(), 0);
    let at = after["applied"][0]["applied_at"].as_str().unwrap();
    assert!(at.len() == 20 && at.starts_with("20") && at.ends_with('Z'), "{at}");
}

#[tokio::test]
async fn the_status_is_readable() {
    let db = TestDatabase::new().await;

    let ran = migrate(&db, &["status"]).await;

    ran.assert_code(0);
    assert!(ran.stdout.starts_with("schema reveille is at version "), "{}", ran.stdout);
    assert!(ran.stdout.contains("   8  engine  applied 20"), "{}", ran.stdout);
}

#[tokio::test]
async fn the_printed_script_does_what_up_does_without_a_connection() {
    let db = TestDatabase::empty().await;
    let home = Home::new();
    let mut command = home.command(&["migrate", "sql", "--schema", "awk'ward"]);
    command.env("DATABASE_URL", "postgres://me@127.0.0.1:1/nowhere");

    let script = finished(command).await;

    script.assert_code(0);
    db.client().await.batch_execute(&script.stdout).await.unwrap();
    let up = migrate(&db, &["up", "--schema", "awk'ward"]).await;
    assert_eq!(up.stdout, "nothing to do: the schema is up to date\n");
}

#[tokio::test]
async fn a_schema_from_before_the_storage_was_reset_is_refused_until_it_is_uninstalled() {
    let db = TestDatabase::empty().await;
    db.make_retired_schema("reveille", 7).await;
    let before = db.contents_of_schema("reveille").await;
    let sentence = "schema reveille is at version 7 and cannot be upgraded, only 8 and later can: remove it with all its \
                    data by `reveille migrate uninstall --schema reveille`, then start again";

    let up = migrate(&db, &["up"]).await;
    let url = db.url();
    let serve = ["serve", "--listen", "127.0.0.1:0", "--database-url", &url];
    let served = Home::new().run(&serve).await;
    let checked = Home::new().run(&[&serve[..], &["--no-migrate"]].concat()).await;
    let status = migrate(&db, &["status", "--json"]).await.json();
    let doctor = Home::new().run(&["doctor", "--database-url", &url]).await;

    for refused in [&up, &served, &checked] {
        refused.assert_code(1);
        assert!(refused.stderr.contains(sentence), "{refused:?}");
    }
    assert_eq!((&status["found"], &status["usable"]), (&7.into(), &false.into()));
    assert_eq!(status["pending"].as_array().unwrap().len(), 0);
    doctor.assert_code(1);
    assert!(doctor.stdout.contains("cannot be upgraded"), "{doctor:?}");
    assert_eq!(db.contents_of_schema("reveille").await, before);
    migrate(&db, &["uninstall", "--yes"]).await.assert_code(0);
    migrate(&db, &["up"]).await.assert_code(0);
}

#[tokio::test]
async fn an_impossible_schema_name_is_wrong_use() {
    let ran = Home::new().run(&["migrate", "sql", "--schema", "pg_mine"]).await;

    ran.assert_code(2);
    assert_eq!(ran.sentence(), "[database]: schema names that begin with pg_ belong to PostgreSQL");
}

#[tokio::test]
async fn uninstall_asks_first_and_then_removes_everything() {
    let db = TestDatabase::new().await;

    let unconfirmed = migrate(&db, &["uninstall"]).await;
    let still = migrate(&db, &["status", "--json"]).await.json();
    let done = migrate(&db, &["uninstall", "--yes", "--json"]).await;
    let again = migrate(&db, &["uninstall", "--yes"]).await;

    unconfirmed.assert_code(1);
    assert!(unconfirmed.sentence().contains("say --yes"), "{unconfirmed:?}");
    assert_eq!(still["usable"], true);
    done.assert_code(0);
    assert!(!done.json()["dropped"].as_array().unwrap().is_empty());
    let left = db.client().await.query_opt("select from pg_namespace where nspname = 'reveille'", &[]).await.unwrap();
    assert!(left.is_none());
    again.assert_code(1);
    assert!(again.sentence().contains("holds no Reveille tables"), "{again:?}");
}

#[tokio::test]
async fn foreign_objects_are_left_alone_unless_forced() {
    let db = TestDatabase::new().await;
    db.client().await.batch_execute("create table reveille.theirs ()").await.unwrap();

    let careful = migrate(&db, &["uninstall", "--yes"]).await;
    let forced = migrate(&db, &["uninstall", "--yes", "--force"]).await;

    careful.assert_code(1);
    assert!(careful.sentence().contains("theirs"), "{careful:?}");
    forced.assert_code(0);
    assert!(forced.stdout.contains("left table reveille.theirs"), "{forced:?}");
}

#[tokio::test]
async fn without_a_url_the_private_database_is_migrated_and_stopped_again() {
    let home = Home::new();

    let up = home.run(&["migrate", "up"]).await;
    let status = home.run(&["migrate", "status", "--json"]).await;

    up.assert_code(0);
    assert!(up.stdout.contains("applied migration 8 (engine)"), "{up:?}");
    assert!(up.stderr.contains("reveille: no DATABASE_URL: private PostgreSQL "), "{up:?}");
    assert_eq!(status.json()["usable"], true);
    // The private server stopped when the program ended, not some time later.
    let alive = std::fs::File::open(home.data_dir().join("alive.lock")).unwrap();
    assert!(alive.try_lock().is_ok());
}
