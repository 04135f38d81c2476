//! Databases that are absent or not usable: one sentence, the right exit code, in time.

use std::net::TcpListener;
use std::time::{Duration, Instant};

use reveille_testkit::{TestCluster, TestDatabase};

use crate::support::{Home, finished};

#[tokio::test]
async fn a_host_without_a_listener_is_unreachable() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let url = format!("postgres://me@{free}/shop");
    let home = Home::new();

    let serve = ["serve", "--listen", "127.0.0.1:0", "--wait-for-database", "0s"];
    for command in [&serve[..], &["doctor"], &["migrate", "up"], &["migrate", "status"]] {
        let ran = home.run(&[command, &["--database-url", &url]].concat()).await;

        ran.assert_code(3);
        assert!(ran.sentence().starts_with(&format!("could not reach PostgreSQL at {free}: ")), "{ran:?}");
        assert_eq!(ran.stdout, "");
    }
}

#[tokio::test]
async fn a_host_that_never_answers_is_given_up_on_in_time() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("postgres://me@{}/shop", silent.local_addr().unwrap());
    let home = Home::new();
    let mut command = home.command(&["doctor", "--database-url", &url]);
    command.env("REVEILLE_DATABASE_CONNECT_TIMEOUT", "500ms");
    let begun = Instant::now();

    let ran = finished(command).await;

    ran.assert_code(3);
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    assert!(ran.sentence().starts_with("could not reach PostgreSQL at 127.0.0.1:"), "{ran:?}");
}

#[tokio::test]
async fn a_wrong_password_is_refused_and_not_repeated() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let cluster = TestCluster::start(|options| options.tcp_port(port));
    let url = format!("postgres://postgres:wrong-hush@127.0.0.1:{port}/postgres");

    let ran = Home::new().run(&["doctor", "--database-url", &url]).await;

    ran.assert_code(1);
    assert!(ran.sentence().contains("refused the login of user postgres"), "{ran:?}");
    assert!(ran.sentence().contains("SQLSTATE 28P01"), "{ran:?}");
    assert!(!ran.stderr.contains("hush"), "{ran:?}");
    drop(cluster);
}

#[tokio::test]
async fn a_missing_database_is_named() {
    let db = TestDatabase::empty().await;
    let url = db.url().replace(db.name(), "no_such_database");

    let ran = Home::new().run(&["migrate", "up", "--database-url", &url]).await;

    ran.assert_code(1);
    assert!(ran.sentence().starts_with("there is no database no_such_database at "), "{ran:?}");
}

/// The exit code is not "unreachable": trying again with the address of a standby does not help.
#[tokio::test]
async fn a_server_that_accepts_no_writes_is_refused_with_a_reason() {
    let db = TestDatabase::empty().await;
    let url = format!("{} options='-c default_transaction_read_only=on'", db.url());

    let ran = Home::new().run(&["migrate", "up", "--database-url", &url]).await;

    ran.assert_code(1);
    assert!(ran.sentence().contains("accepts no writes, it is a standby or set to read-only"), "{ran:?}");
}

#[tokio::test]
async fn a_url_that_cannot_be_used_is_wrong_use_and_not_repeated() {
    let ran = Home::new().run(&["doctor", "--database-url", "mysql://me:hush@db/shop"]).await;

    ran.assert_code(2);
    assert_eq!(ran.sentence(), "[database]: the database URL does not begin with postgres://");
}

#[tokio::test]
async fn a_private_server_without_binaries_is_refused_with_a_reason() {
    let home = Home::new();
    let mut command = home.command(&["doctor"]);
    command.env("REVEILLE_PG_BIN", home.path());

    let ran = finished(command).await;

    ran.assert_code(1);
    assert!(ran.sentence().contains("holds no usable PostgreSQL"), "{ran:?}");
}

#[tokio::test]
async fn a_foreign_data_directory_is_left_alone() {
    let home = Home::new();
    home.file("data/precious.txt", "mine");

    let ran = home.run(&["migrate", "up"]).await;

    ran.assert_code(1);
    assert!(ran.sentence().contains("choose an empty or new data directory"), "{ran:?}");
    assert_eq!(std::fs::read_dir(home.data_dir()).unwrap().count(), 1);
}
