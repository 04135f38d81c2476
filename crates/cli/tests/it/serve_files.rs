//! `serve` under a limit on open files that is lower than the limit on clients.

use std::time::Duration;

use reveille_testkit::TestDatabase;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::support::{Home, Serving};

/// Nothing here takes long; a client without an answer by then hangs.
const PROMPTLY: Duration = Duration::from_secs(10);

async fn answer(stream: &mut TcpStream) -> String {
    let mut some = vec![0; 4096];
    let read = timeout(PROMPTLY, stream.read(&mut some)).await.expect("an answer comes").unwrap_or(0);
    String::from_utf8_lossy(&some[..read]).into_owned()
}

async fn push(stream: &mut TcpStream) -> String {
    let body = r#"{"items":[{"queue":"q","payload":1}]}"#;
    let head = "POST /api/v1/push HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n";
    let request = format!("{head}content-length: {}\r\n\r\n{body}", body.len());
    stream.write_all(request.as_bytes()).await.expect("the server takes a request");
    answer(stream).await
}

#[tokio::test]
async fn clients_beyond_the_limit_on_files_are_refused_and_the_others_are_served() {
    let db = TestDatabase::new().await;
    let home = Home::new();
    let serve = ["serve", "--listen", "127.0.0.1:0", "--database-url", &db.url()];
    let serving = Serving::start(home.command_with_files(300, &serve)).await;
    let mut first = TcpStream::connect(&serving.address).await.unwrap();
    first.write_all(b"GET /livez HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
    assert!(answer(&mut first).await.starts_with("HTTP/1.1 200"));
    let mut idle = Vec::new();
    for _ in 0..400 {
        idle.push(TcpStream::connect(&serving.address).await.expect("the server listens"));
    }

    let mut late = TcpStream::connect(&serving.address).await.unwrap();
    let refusal = answer(&mut late).await;

    assert!(refusal.starts_with("HTTP/1.1 503") && refusal.contains("too_many_connections"), "{refusal}");
    // Only now does a push need a connection to the database.
    let pushed = push(&mut first).await;
    assert!(pushed.starts_with("HTTP/1.1 201"), "{pushed}");
    let log = serving.log();
    let lowered: Vec<&str> = log.lines().filter(|line| line.contains("the limit on open files is lower")).collect();
    assert!(lowered.len() == 1 && lowered[0].contains("INFO") && !log.contains("WARN reveille_server"), "{log}");
}
