//! Requests that never reach a route are answered in JSON, too.

use reveille_testkit::TestDatabase;
use tokio::io::AsyncWriteExt;

use crate::support::{Reply, Running, rest_of};

async fn reply_to(server: &Running, bytes: &[u8]) -> Reply {
    let mut stream = server.connect().await;
    // The server may hang up before it has read all of it.
    let _ = stream.write_all(bytes).await;
    Reply::parse(&rest_of(&mut stream).await)
}

#[tokio::test]
async fn a_malformed_request_head_is_answered_in_json() {
    let db = TestDatabase::new().await;
    let server = Running::start(&db.url(), |options| options).await;
    let long = format!("GET /{} HTTP/1.1\r\nhost: localhost\r\n\r\n", "x".repeat(66_000));
    let many = format!("GET /livez HTTP/1.1\r\nhost: localhost\r\n{}\r\n", "a: b\r\n".repeat(200));

    for (bytes, status, code) in [
        (&b"NONSENSE\r\n\r\n"[..], 400, "invalid_head"),
        (b"GET /livez HTTP/1.1\r\nno colon\r\n\r\n", 400, "invalid_head"),
        (b"GET /livez HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n", 400, "invalid_head"),
        (b"GET /livez HTTP/3.7\r\n\r\n", 400, "invalid_head"),
        (long.as_bytes(), 414, "uri_too_long"),
        (many.as_bytes(), 431, "head_too_large"),
    ] {
        let reply = reply_to(&server, bytes).await;

        assert_eq!((reply.status, reply.json()["code"].as_str()), (status, Some(code)), "{reply:?}");
        assert!(reply.json()["error"].is_string());
        assert!(reply.head.contains(&format!("content-length: {}", reply.body.len())), "{}", reply.head);
        assert!(reply.head.contains("content-type: application/json") && reply.head.contains("connection: close"));
    }
}

#[tokio::test]
async fn a_malformed_request_behind_a_good_one_gets_its_own_answer() {
    let db = TestDatabase::new().await;
    let server = Running::start(&db.url(), |options| options).await;
    let mut stream = server.connect().await;

    stream.write_all(b"GET /livez HTTP/1.1\r\nhost: localhost\r\n\r\nNONSENSE\r\n\r\n").await.unwrap();

    let both = rest_of(&mut stream).await;
    let second = both.rfind("HTTP/1.1 ").expect("two answers");
    assert!(both[..second].contains("\"alive\""), "{both}");
    assert_eq!(Reply::parse(&both[second..]).json()["code"], "invalid_head");
}
