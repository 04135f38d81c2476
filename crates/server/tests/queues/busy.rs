//! Many slow questions at once: the rest of the server goes on, and says truly what is wrong.

use reveille::messages::MessagesOptions;
use reveille::tokio_postgres::Client;
use reveille_testkit::TestDatabase;

use crate::support::{Asking, House, Node};

/// Reads that nothing but administration makes, each stopped by a lock on what it reads.
const SLOW: &str = "/api/v1/traces/names";
/// What administration gets of the usual pool.
const SHARE: i64 = 2;

/// A server that waits for two seconds for a free connection, with as many slow reads as it takes,
/// and more.
async fn slowed() -> (House, Client, Vec<Asking>) {
    let db = TestDatabase::new().await;
    let url = format!("{} connect_timeout=2", db.url());
    let node = Node::start(&url, |options| options, MessagesOptions::default()).await;
    let house = House { db, node };
    house.push("mail", "1").await;
    let locker = house.db.client().await;
    locker.batch_execute("begin; lock table reveille.trace in access exclusive mode").await.expect("the table is free");
    let asking = (0..12).map(|_| house.client().spawn(SLOW)).collect();
    house.until_blocked(SHARE).await;
    (house, locker, asking)
}

#[tokio::test]
async fn slow_reads_of_administration_leave_a_node_ready_and_new_groups_served() {
    let (house, _locker, _asking) = slowed().await;

    let ready = house.get("/readyz").await;
    let popped = house.get("/api/v1/pop/queue/mail?consumerGroup=new").await;

    assert_eq!(ready.status, 200, "{}", ready.body);
    assert_eq!(popped.status, 200, "{}", popped.body);
    assert_eq!(popped.messages().len(), 1);
}

#[tokio::test]
async fn a_read_for_which_no_connection_is_free_is_told_to_come_back() {
    let (house, _locker, _asking) = slowed().await;

    let reply = house.get(SLOW).await;

    assert_eq!((reply.status, &*reply.code()), (429, "overloaded"), "{}", reply.body);
    assert!(reply.head.contains("retry-after: 1"), "{}", reply.head);
}
