//! `serve` on a given database.

use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use reveille_testkit::TestDatabase;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

use crate::support::{Home, PATIENCE, Serving, signal_group};

#[tokio::test]
async fn serve_migrates_answers_and_ends_on_sigterm() {
    let db = TestDatabase::empty().await;
    let home = Home::new();
    let mut serving =
        Serving::start(home.command(&["serve", "--listen", "127.0.0.1:0", "--database-url", &db.url()])).await;

    let (status, body) = serving.get("/health").await;
    let health: serde_json::Value = serde_json::from_str(&body).unwrap();
    assert_eq!((status, &health["status"], &health["database"]), (200, &"healthy".into(), &"connected".into()));
    assert_eq!(serving.get("/livez").await.0, 200);
    assert_eq!(serving.get("/readyz").await.0, 200);
    assert_eq!(serving.get("/nonsense").await.0, 404);
    db.client().await.batch_execute("select from reveille.migration").await.unwrap();

    serving.signal_alone(Signal::SIGTERM);

    assert_eq!(serving.exit_code().await, Some(0));
    assert!(!home.data_dir().exists(), "no private server was created");
}

#[tokio::test]
async fn a_port_in_use_is_refused_before_anything_is_started() {
    let taken = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let home = Home::new();

    let ran = home.run(&["serve", "--listen", &address]).await;

    ran.assert_code(1);
    assert!(ran.sentence().starts_with(&format!("{address} is already in use: ")), "{ran:?}");
    assert!(!home.data_dir().exists());
}

#[tokio::test]
async fn an_address_that_others_can_reach_is_refused() {
    let ran = Home::new().run(&["serve", "--listen", "0.0.0.0:0"]).await;

    ran.assert_code(1);
    assert!(ran.sentence().contains("no authentication yet"), "{ran:?}");
}

#[tokio::test]
async fn without_migrating_a_schema_that_is_not_there_is_refused() {
    let db = TestDatabase::empty().await;

    let serve = ["serve", "--listen", "127.0.0.1:0", "--no-migrate", "--database-url", &db.url()];
    let ran = Home::new().run(&serve).await;

    ran.assert_code(1);
    assert!(
        ran.stderr.contains("reveille: schema reveille holds no Reveille tables: run `reveille migrate up`"),
        "{ran:?}"
    );
    assert_eq!(ran.stdout, "");
}

#[tokio::test]
async fn logs_can_be_read_by_programs() {
    let db = TestDatabase::new().await;

    let serve = ["serve", "--listen", "127.0.0.1:0", "--no-migrate", "--schema", "other", "--log-format", "json"];
    let ran = Home::new().run(&[&serve[..], &["--database-url", &db.url()]].concat()).await;

    ran.assert_code(1);
    let logs: Vec<serde_json::Value> = ran
        .stderr
        .lines()
        .filter(|line| line.starts_with('{'))
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert!(logs.iter().any(|log| log["level"] == "INFO" && log["message"] == "connected to PostgreSQL"), "{ran:?}");
}

#[tokio::test]
async fn serve_goes_on_when_the_reader_of_its_logs_is_gone() {
    let db = TestDatabase::new().await;
    let home = Home::new();
    let serve = ["serve", "--listen", "127.0.0.1:0", "--log-level", "debug", "--database-url", &db.url()];
    let mut serving = Serving::start_with_closed_stderr(home.command(&serve)).await;

    assert_eq!(serving.get("/readyz").await.0, 200);
    serving.signal_alone(Signal::SIGTERM);

    assert_eq!(serving.exit_code().await, Some(0));
}

#[tokio::test]
async fn ctrl_c_during_the_start_ends_serve_at_once() {
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("postgres://me@{}/shop", silent.local_addr().unwrap());
    let home = Home::new();
    let mut child = home.command(&["serve", "--listen", "127.0.0.1:0", "--database-url", &url]).spawn().unwrap();
    let _waiting = timeout(PATIENCE, silent.accept()).await.unwrap().unwrap();
    let begun = Instant::now();

    signal_group(&child, Signal::SIGINT);

    let status = timeout(PATIENCE, child.wait()).await.unwrap().unwrap();
    assert_eq!(status.code(), Some(130));
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
}

#[tokio::test]
async fn a_second_ctrl_c_does_not_wait_for_slow_clients() {
    let db = TestDatabase::new().await;
    let home = Home::new();
    let mut serving =
        Serving::start(home.command(&["serve", "--listen", "127.0.0.1:0", "--database-url", &db.url()])).await;
    let mut slow_client = TcpStream::connect(&serving.address).await.unwrap();
    let head = "POST / HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\nexpect: 100-continue\r\ncontent-length: 4\r\n\r\n";
    slow_client.write_all(head.as_bytes()).await.unwrap();
    slow_client.read_exact(&mut [0; b"HTTP/1.1 100 Continue\r\n\r\n".len()]).await.unwrap();
    let begun = Instant::now();

    serving.signal(Signal::SIGINT);
    while TcpStream::connect(&serving.address).await.is_ok() {
        assert!(begun.elapsed() < PATIENCE, "it still accepts clients");
    }
    serving.signal(Signal::SIGINT);

    assert_eq!(serving.exit_code().await, Some(130));
    assert!(begun.elapsed() < Duration::from_secs(8), "{:?}", begun.elapsed());
}
