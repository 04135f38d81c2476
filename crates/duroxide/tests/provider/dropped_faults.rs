//! Callers that go away, and rows that another transaction holds for a moment.

use std::time::Duration;

use duroxide::providers::Provider;
use reveille_testkit::TestDatabase;
use tokio_postgres::Client;

use crate::fault_harness::{Due, LONG, WAIT, activity, open, start, take_activity, take_turn, woken};

/// How many statements wait for a lock that another transaction has.
async fn blocked(client: &Client) -> i64 {
    let count = "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'";
    client.query_one(count, &[]).await.expect("sessions are counted").get(0)
}

async fn until_blocked(client: &Client, wanted: i64) {
    let reached = async {
        while blocked(client).await != wanted {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), reached).await.expect("a statement waits for the lock");
}

#[tokio::test]
async fn a_fetch_that_is_dropped_while_it_waits_leaves_the_next_message_to_others() {
    let database = TestDatabase::new().await;
    let provider = open(&database).await;
    for _ in 0..50 {
        let waiting = take_turn(&provider, LONG, WAIT);
        assert!(tokio::time::timeout(Duration::from_millis(2), waiting).await.is_err());
    }

    woken(&database, Due::Now, take_turn(&provider, LONG, WAIT), async {
        provider.enqueue_for_orchestrator(start("order"), None).await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn a_fetch_that_is_dropped_while_its_claim_is_under_way_gives_the_turn_back_uncounted() {
    let database = TestDatabase::new().await;
    let provider = open(&database).await;
    let (mut holder, watcher) = (database.client().await, database.client().await);
    provider.enqueue_for_orchestrator(start("order"), None).await.unwrap();
    let held = holder.transaction().await.unwrap();
    held.execute("select from duroxide.message for update", &[]).await.unwrap();

    tokio::select! {
        _ = take_turn(&provider, LONG, WAIT) => panic!("the message is held"),
        () = until_blocked(&watcher, 1) => {}
    }
    held.rollback().await.unwrap();

    let next = provider.fetch_orchestration_item(LONG, Duration::from_secs(5), None).await.unwrap();
    let (item, _, attempt) = next.expect("the lock of the one that went away is released at once");
    assert_eq!((item.instance.as_str(), attempt), ("order", 1));
}

#[tokio::test]
async fn a_fetch_that_is_dropped_while_it_claims_an_activity_gives_it_back_uncounted() {
    let database = TestDatabase::new().await;
    let provider = open(&database).await;
    let (mut holder, watcher) = (database.client().await, database.client().await);
    let owner = Some(("one", LONG));
    provider.enqueue_for_worker(activity(Some("cart"))).await.unwrap();
    let first = take_activity(&provider, LONG, WAIT, owner).await.unwrap();
    provider.ack_work_item(&first, None).await.unwrap();
    provider.enqueue_for_worker(activity(Some("cart"))).await.unwrap();
    let held = holder.transaction().await.unwrap();
    held.execute("select from duroxide.session for update", &[]).await.unwrap();

    tokio::select! {
        _ = take_activity(&provider, LONG, WAIT, owner) => panic!("the session is held"),
        () = until_blocked(&watcher, 1) => {}
    }
    held.rollback().await.unwrap();

    assert!(take_activity(&provider, LONG, Duration::from_secs(5), owner).await.is_some());
    let attempts = "select attempt_count from duroxide.activity";
    assert_eq!(watcher.query_one(attempts, &[]).await.unwrap().get::<_, i32>(0), 1);
}

#[tokio::test]
async fn after_many_dropped_fetches_nothing_is_locked_and_no_connection_is_lost() {
    let database = TestDatabase::new().await;
    let provider = open(&database).await;
    let client = database.client().await;
    for number in 0..40_u64 {
        let item = start(&format!("order-{number}"));
        let dropped = tokio::time::timeout(Duration::from_micros(200 * number), take_turn(&provider, LONG, WAIT));
        let (_, sent) = tokio::join!(dropped, provider.enqueue_for_orchestrator(item, None));
        sent.unwrap();
    }

    // What is not locked can be fetched; what was fetched in time by a caller is locked by right.
    let mut found = 0;
    while take_turn(&provider, LONG, Duration::from_secs(1)).await.is_some() {
        found += 1;
    }
    let locked = "select count(*) from duroxide.mailbox where lock_token is not null";
    let locked: i64 = client.query_one(locked, &[]).await.unwrap().get(0);
    assert!(found > 0 && locked == 40, "{found} fetched at last, {locked} locked");
    provider.close().await;
    let sessions = "select count(*) from pg_stat_activity
         where datname = current_database() and application_name like 'reveille%'";
    // A server's process outlives its client for a moment.
    let all_gone = async {
        while client.query_one(sessions, &[]).await.unwrap().get::<_, i64>(0) > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), all_gone).await.expect("every connection is closed");
}

/// A transaction that rolls back announces nothing.
#[tokio::test]
async fn a_turn_that_another_transaction_held_and_gave_up_is_fetched_soon() {
    let database = TestDatabase::new().await;
    let provider = open(&database).await;
    let mut holder = database.client().await;
    let held = holder.transaction().await.unwrap();
    held.execute("insert into duroxide.mailbox (instance_id, known) values ('other', true)", &[]).await.unwrap();
    provider.enqueue_for_orchestrator(start("order"), None).await.unwrap();
    held.execute("select from duroxide.mailbox where instance_id = 'order' for update", &[]).await.unwrap();

    woken(&database, Due::Now, take_turn(&provider, LONG, WAIT), async { held.rollback().await.unwrap() }).await;
}

#[tokio::test]
async fn an_activity_that_another_transaction_held_and_gave_up_is_fetched_soon() {
    let database = TestDatabase::new().await;
    let provider = open(&database).await;
    let mut holder = database.client().await;
    provider.enqueue_for_worker(activity(None)).await.unwrap();
    let held = holder.transaction().await.unwrap();
    held.execute("select from duroxide.activity for update", &[]).await.unwrap();

    woken(&database, Due::Now, take_activity(&provider, LONG, WAIT, None), async { held.rollback().await.unwrap() })
        .await;
}
