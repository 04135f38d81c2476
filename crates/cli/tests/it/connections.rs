//! `serve` opens as many connections as the doctor counts.

use std::collections::BTreeMap;
use std::time::Instant;

use reveille::tokio_postgres::Client;
use reveille_testkit::TestDatabase;
use serde_json::Value;

use crate::support::{Home, PATIENCE, Serving, post};

/// The default size of the pool.
const SHARED: i64 = 4;
/// The other connections of a node, each with a purpose of its own.
const OWN: [&str; 8] = ["ack", "broadcaster", "listen", "make", "pop", "probe", "push-1", "push-2"];

/// The sessions of the node under test, by purpose.
async fn sessions(client: &Client) -> BTreeMap<String, i64> {
    let counted = "select substr(application_name, 10), count(*) from pg_stat_activity
                   where datname = current_database() and application_name like 'reveille %' group by 1";
    client.query(counted, &[]).await.expect("the server answers").iter().map(|row| (row.get(0), row.get(1))).collect()
}

/// Uses every kind of connection.
async fn work(serving: &Serving) {
    // Many partitions: each connection for pushes has its own.
    for n in 0..16 {
        let item = format!(r#"{{"items":[{{"queue":"mail","partition":"{n}","payload":{n}}}]}}"#);
        assert_eq!(post(&serving.address, "/api/v1/push", &item).await.0, 201);
    }
    let (status, body) = serving.get("/api/v1/pop/queue/mail").await;
    assert_eq!(status, 200, "{body}");
    let popped: Value = serde_json::from_str(&body).expect("JSON");
    let message = &popped["messages"][0];
    let (transaction, partition, lease) = (&message["transactionId"], &message["partitionId"], &message["leaseId"]);
    let ack = format!(
        r#"{{"transactionId":{transaction},"partitionId":{partition},"leaseId":{lease},"status":"completed"}}"#
    );
    let (status, body) = post(&serving.address, "/api/v1/ack", &ack).await;
    assert_eq!(status, 200, "{body}");
    assert_eq!(serving.get("/readyz").await.0, 200);
    assert_eq!(serving.get("/api/v1/resources/queues").await.0, 200);
}

#[tokio::test]
async fn the_doctor_counts_the_connections_that_serve_opens() {
    let db = TestDatabase::new().await;
    let (home, client) = (Home::new(), db.client().await);
    let start = async |url: &str| {
        Serving::start(home.command(&["serve", "--listen", "127.0.0.1:0", "--database-url", url])).await
    };
    let serving = start(&db.url()).await;
    // Another node that waits for hints: without one, no hint is sent.
    let other = start(&format!("{} application_name=other", db.url())).await;
    assert_eq!(other.get("/api/v1/pop/queue/mail").await.0, 204);
    let doctor = home.run(&["doctor", "--database-url", &db.url()]).await;
    let needed = doctor.stdout.lines().find_map(|line| line.split_once("we need ")).unwrap().1;

    let begun = Instant::now();
    let mut open = BTreeMap::new();
    while OWN.iter().any(|purpose| !open.contains_key(*purpose)) {
        work(&serving).await;
        open = sessions(&client).await;
        assert!(begun.elapsed() < PATIENCE, "{open:?}");
    }

    let own: i64 = open.iter().filter(|(purpose, _)| *purpose != "caller").map(|(_, count)| count).sum();
    assert_eq!(i64::try_from(OWN.len()).unwrap(), own, "{open:?}");
    assert!(open["caller"] <= SHARED, "{open:?}");
    assert!(needed.starts_with(&format!("{}", own + SHARED)), "{needed}");
}
