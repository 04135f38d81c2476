//! Paths and methods, known and unknown, and the port.

use reveille_server::{ServerError, ServerOptions};
use reveille_testkit::TestDatabase;

use crate::support::Running;

#[tokio::test]
async fn an_unknown_path_is_answered_in_json() {
    let db = TestDatabase::new().await;
    let server = Running::start(&db.url(), |options| options).await;

    let reply = server.get("/api/v1/nonsense").await;

    assert_eq!(reply.status, 404);
    assert_eq!(reply.json()["code"], "no_such_route");
    assert!(reply.json()["error"].is_string());
}

#[tokio::test]
async fn a_wrong_method_is_answered_with_the_allowed_ones() {
    let db = TestDatabase::new().await;
    let server = Running::start(&db.url(), |options| options).await;

    let reply = server.ask("POST", "/livez").await;

    assert_eq!(reply.status, 405);
    assert_eq!(reply.json()["code"], "method_not_allowed");
    assert!(reply.head.contains("allow: get"), "{}", reply.head);
}

#[tokio::test]
async fn a_head_request_is_answered_without_a_body() {
    let db = TestDatabase::new().await;
    let server = Running::start(&db.url(), |options| options).await;

    let reply = server.ask("HEAD", "/livez").await;

    assert_eq!((reply.status, reply.body.as_str()), (200, ""));
}

#[tokio::test]
async fn a_port_in_use_is_named() {
    let taken = ServerOptions::default().listen(([127, 0, 0, 1], 0).into()).bind().await.unwrap();

    let error = ServerOptions::default().listen(taken.address()).bind().await.unwrap_err();

    assert!(matches!(error, ServerError::InUse { .. }));
    let sentence = error.to_string();
    assert!(sentence.starts_with(&format!("{} is already in use", taken.address())), "{sentence}");
}
