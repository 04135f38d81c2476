//! `serve` that starts before its database.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use reveille_testkit::{TestCluster, TestDatabase};
use tokio::process::Child;
use tokio::time::timeout;

use crate::support::{Home, PATIENCE, Ran, Serving, finished, signal_group};

/// The address of the server that [`cluster`] starts, as it is before the server is there.
fn url(home: &Home) -> String {
    format!("host={} user=postgres dbname=postgres", home.data_dir().join("run").display())
}

async fn cluster(home: &Home) -> TestCluster {
    let dir = home.data_dir();
    let start = tokio::task::spawn_blocking(|| TestCluster::start(|options| options.data_dir(dir)));
    start.await.expect("a server of its own starts")
}

/// Starts `serve` with its log in a file, and waits until it says that it waits.
async fn waiting_serve(home: &Home, log: &Path) -> Child {
    let mut command = home.command(&["serve", "--listen", "127.0.0.1:0", "--database-url", &url(home)]);
    let stderr = fs::File::create(log).expect("a file can be made");
    let child = command.stderr(stderr).spawn().expect("the program can be run");
    let said = async {
        while !text(log).contains("waiting for the database: could not reach PostgreSQL") {
            tokio::task::yield_now().await;
        }
    };
    timeout(PATIENCE, said).await.expect("it says in time that it waits");
    child
}

fn text(log: &Path) -> String {
    fs::read_to_string(log).expect("a log can be read")
}

async fn refused(home: &Home, flags: &[&str]) -> (Ran, Duration) {
    let begun = Instant::now();
    let ran = finished(home.command(&[&["serve", "--listen", "127.0.0.1:0"], flags].concat())).await;
    (ran, begun.elapsed())
}

#[tokio::test]
async fn serve_waits_for_a_database_that_starts_late() {
    let home = Home::new();
    let log = home.path().join("log");
    let child = waiting_serve(&home, &log).await;

    let cluster = cluster(&home).await;
    let mut serving = Serving::of(child).await;

    assert_eq!(serving.get("/readyz").await.0, 200);
    let said = text(&log);
    assert!(said.contains("the database is there"), "{said}");
    assert!(said.matches("waiting for the database").count() <= 2, "one line for 10 s: {said}");
    serving.signal_alone(Signal::SIGTERM);
    assert_eq!(serving.exit_code().await, Some(0));
    drop(cluster);
}

#[tokio::test]
async fn a_signal_ends_the_wait_at_once() {
    let home = Home::new();
    let mut child = waiting_serve(&home, &home.path().join("log")).await;
    let begun = Instant::now();

    signal_group(&child, Signal::SIGTERM);

    let status = timeout(PATIENCE, child.wait()).await.unwrap().unwrap();
    assert_eq!(status.code(), Some(130));
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
}

#[tokio::test]
async fn the_wait_has_an_end() {
    let home = Home::new();

    let (ran, took) = refused(&home, &["--database-url", &url(&home), "--wait-for-database", "1500ms"]).await;

    ran.assert_code(3);
    assert!(took >= Duration::from_secs(1), "{took:?}");
    assert!(ran.sentences()[0].starts_with("could not reach PostgreSQL at "), "{ran:?}");
}

#[tokio::test]
async fn a_database_that_does_not_exist_is_not_waited_for() {
    let db = TestDatabase::empty().await;
    let url = db.url().replace(db.name(), "no_such_database");

    let (ran, took) = refused(&Home::new(), &["--database-url", &url]).await;

    ran.assert_code(1);
    assert!(ran.sentence().starts_with("there is no database no_such_database at "), "{ran:?}");
    assert!(took < Duration::from_secs(20), "{took:?}");
}

#[tokio::test]
async fn a_wrong_password_is_not_waited_for() {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let cluster = TestCluster::start(|options| options.tcp_port(port));
    let url = format!("postgres://postgres:wrong@127.0.0.1:{port}/postgres");

    let (ran, took) = refused(&Home::new(), &["--database-url", &url]).await;

    ran.assert_code(1);
    assert!(ran.sentence().contains("refused the login of user postgres"), "{ran:?}");
    assert!(took < Duration::from_secs(20), "{took:?}");
    drop(cluster);
}
