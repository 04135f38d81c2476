//! Many slow reads at once: the other requests are served, and a refusal names the right cause.

use reveille::messages::MessagesOptions;
use reveille::tokio_postgres::Client;
use reveille_testkit::TestDatabase;

use crate::support::{Node, PendingReply, TestServer};

/// A read of administration, which waits for a lock on its table.
const SLOW: &str = "/api/v1/traces/names";
/// The connections of the pool that administration may use.
const SHARE: i64 = 2;

/// A server that waits for a free connection for two seconds, with more slow reads than
/// administration has connections.
async fn slowed() -> (TestServer, Client, Vec<PendingReply>) {
    let db = TestDatabase::new().await;
    let url = format!("{} connect_timeout=2", db.url());
    let node = Node::start(&url, |options| options, MessagesOptions::default()).await;
    let server = TestServer { db, node };
    server.push("mail", "1").await;
    let locker = server.db.client().await;
    locker.batch_execute("begin; lock table reveille.trace in access exclusive mode").await.expect("the table is free");
    let pending = (0..12).map(|_| server.client().spawn(SLOW)).collect();
    server.until_blocked(SHARE).await;
    (server, locker, pending)
}

#[tokio::test]
async fn slow_reads_of_administration_leave_a_node_ready_and_new_groups_served() {
    let (server, _locker, _pending) = slowed().await;

    let ready = server.get("/readyz").await;
    let popped = server.get("/api/v1/pop/queue/mail?consumerGroup=new").await;

    assert_eq!(ready.status, 200, "{}", ready.body);
    assert_eq!(popped.status, 200, "{}", popped.body);
    assert_eq!(popped.messages().len(), 1);
}

#[tokio::test]
async fn a_read_without_a_free_connection_is_refused_with_retry_after() {
    let (server, _locker, _pending) = slowed().await;

    let reply = server.get(SLOW).await;

    assert_eq!((reply.status, &*reply.code()), (429, "overloaded"), "{}", reply.body);
    assert!(reply.head.contains("retry-after: 1"), "{}", reply.head);
}
