//! Whether an ack waits for the disk.

use reveille::database::{SchemaName, Statement, statements};
use reveille::messages::{Batch, Settlement};
use reveille::uuid::Uuid;
use tokio_postgres::Client;

use crate::pop_kit::{pop_queue, push_to};
use crate::settle_kit::{RELEASED, settle};
use crate::support::Fixture;

fn named(name: &str) -> &'static Statement {
    statements().find(|statement| statement.name == name).expect("is there")
}

/// What the commit of these acks would wait for. Nothing is committed.
async fn waits(client: &mut Client, statement: &Statement, batches: &[&Batch]) -> String {
    let transaction = client.transaction().await.unwrap();
    let leases = "select partition, grp, nonce, leased_through from reveille.cursor where nonce = any ($1)";
    let nonces: Vec<Uuid> = batches.iter().map(|batch| batch.lease.unwrap().0).collect();
    let rows = transaction.query(leases, &[&nonces]).await.unwrap();
    assert_eq!(rows.len(), batches.len());
    let partitions: Vec<i32> = rows.iter().map(|row| row.get(0)).collect();
    let groups: Vec<i32> = rows.iter().map(|row| row.get(1)).collect();
    let nonces: Vec<Uuid> = rows.iter().map(|row| row.get(2)).collect();
    let throughs: Vec<i64> = rows.iter().map(|row| row.get(3)).collect();
    let strict = vec![false; rows.len()];
    let text = statement.text(&SchemaName::default());
    let done = if statement.types.len() == 5 {
        transaction.query(&text, &[&partitions, &groups, &nonces, &throughs, &strict]).await.unwrap()
    } else {
        let (outcomes, errors) = (vec!["completed"; rows.len()], vec![None::<&str>; rows.len()]);
        transaction
            .query(&text, &[&partitions, &groups, &nonces, &throughs, &outcomes, &errors, &strict])
            .await
            .unwrap()
    };
    assert_eq!(done.len(), batches.len());
    let setting = transaction.query_one("show synchronous_commit", &[]).await.unwrap().get(0);
    transaction.rollback().await.unwrap();
    setting
}

#[tokio::test]
async fn relaxed_acks_do_not_wait_one_durable_queue_makes_all_wait_and_a_stricter_server_stays_strict() {
    let it = Fixture::new().await;
    for name in ["quick", "safe"] {
        push_to(&it.messages, name, "a", &["1"]).await;
    }
    it.set("quick", "durable_acks = false").await;
    let (quick, safe) = (pop_queue(&it.messages, "quick", 1).await, pop_queue(&it.messages, "safe", 1).await);
    let mut client = it.client().await;
    client.batch_execute("set synchronous_commit = remote_apply").await.unwrap();

    for statement in ["messages/settle/complete.sql", "messages/settle/rest.sql"].map(named) {
        assert_eq!(waits(&mut client, statement, &[&quick]).await, "off", "{}", statement.name);
        assert_eq!(waits(&mut client, statement, &[&safe]).await, "remote_apply", "{}", statement.name);
        assert_eq!(waits(&mut client, statement, &[&quick, &safe]).await, "remote_apply", "{}", statement.name);
    }
    let within = named("messages/settle/rest_in.sql");
    assert_eq!(waits(&mut client, within, &[&quick]).await, "remote_apply", "pushes beside it must be durable");
    assert_eq!(settle(&it.messages, Settlement::complete(&quick.partitions[0])).await, RELEASED);
}
