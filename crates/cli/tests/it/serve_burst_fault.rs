//! The memory of `serve` after a burst of large requests.
#![cfg(target_os = "linux")]

use std::time::{Duration, Instant};

use reveille_testkit::TestDatabase;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::interval;

use crate::support::{Home, Serving};

/// How long memory may take to go back, with a large margin.
const BACK_WITHIN: Duration = Duration::from_secs(60);

/// Pushes so many tiny messages and reads the answer.
async fn push(address: &str, messages: usize) {
    let body = format!(r#"{{"items":[{}]}}"#, vec![r#"{"queue":"q"}"#; messages].join(","));
    let head =
        "POST /api/v1/push HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\n";
    let mut stream = TcpStream::connect(address).await.expect("the server listens");
    let request = format!("{head}content-length: {}\r\n\r\n{body}", body.len());
    stream.write_all(request.as_bytes()).await.expect("the server takes a request");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.expect("the server answers");
    assert!(answer.starts_with(b"HTTP/1.1 201"), "{}", String::from_utf8_lossy(&answer[..answer.len().min(300)]));
}

#[tokio::test]
async fn memory_goes_back_to_the_system_after_a_burst() {
    let db = TestDatabase::new().await;
    let home = Home::new();
    let serving =
        Serving::start(home.command(&["serve", "--listen", "127.0.0.1:0", "--database-url", &db.url()])).await;
    push(&serving.address, 1).await;
    let before = serving.resident_mib();

    let address = serving.address.as_str();
    let mut peak = before;
    for _ in 0..2 {
        tokio::join!(push(address, 50_000), push(address, 50_000), push(address, 50_000), push(address, 50_000));
        peak = peak.max(serving.resident_mib());
    }
    let (mut every, ended) = (interval(Duration::from_millis(200)), Instant::now());
    let enough = before + (peak - before) / 3;
    while serving.resident_mib() > enough && ended.elapsed() < BACK_WITHIN {
        every.tick().await;
    }

    let (after, took) = (serving.resident_mib(), ended.elapsed());
    eprintln!("{before} MiB before the burst, {peak} at its end, {after} after {took:?}");
    assert!(after <= enough, "{before} MiB before the burst, {peak} at its end, {after} after {took:?}");
}
