//! The shutdown of a server.

use std::time::{Duration, Instant};

use reveille_testkit::TestDatabase;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::{PATIENCE, Reply, Running, rest_of};

/// Waits until the server has this many clients.
async fn until_connected(server: &Running, count: usize) {
    let deadline = Instant::now() + PATIENCE;
    while server.handle.connections() != count {
        assert!(Instant::now() < deadline, "there are {} clients", server.handle.connections());
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn running_requests_are_answered_and_idle_clients_are_disconnected() {
    let db = TestDatabase::new().await;
    let mut server = Running::start(&db.url(), |options| options).await;
    let mut busy = server.connect().await;
    let head = "POST /livez HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\nexpect: 100-continue\r\ncontent-length: 4\r\n\r\n";
    busy.write_all(head.as_bytes()).await.unwrap();
    let mut go_on = [0; b"HTTP/1.1 100 Continue\r\n\r\n".len()];
    busy.read_exact(&mut go_on).await.unwrap();
    let mut idle = server.connect().await;
    until_connected(&server, 2).await;

    server.shutdown.cancel();

    assert_eq!(rest_of(&mut idle).await, "");
    assert!(TcpStream::connect(server.address()).await.is_err(), "no new client is accepted");
    busy.write_all(b"body").await.unwrap();
    assert_eq!(Reply::parse(&rest_of(&mut busy).await).status, 405);
    server.ended().await;
    assert_eq!(server.handle.connections(), 0);
}

#[tokio::test]
async fn a_request_that_does_not_finish_in_time_is_cut_off() {
    let db = TestDatabase::new().await;
    let mut server = Running::start(&db.url(), |options| options.drain_timeout(Duration::from_millis(200))).await;
    let mut slow_client = server.connect().await;
    slow_client
        .write_all(b"POST /livez HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 10\r\n\r\n")
        .await
        .unwrap();
    until_connected(&server, 1).await;
    let begun = Instant::now();

    server.shutdown.cancel();
    server.ended().await;

    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    assert_eq!(rest_of(&mut slow_client).await, "");
}

#[tokio::test]
async fn an_idle_server_ends_at_once_and_the_port_is_free_again() {
    let db = TestDatabase::new().await;
    let mut server = Running::start(&db.url(), |options| options).await;
    let begun = Instant::now();

    server.shutdown.cancel();
    server.ended().await;

    assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
    let again = reveille_server::ServerOptions::default().listen(server.address()).bind().await;
    assert!(again.is_ok());
    server.database.close().await;
}
