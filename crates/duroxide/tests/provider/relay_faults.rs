//! The next activity comes with the settlement of the one before, and is soon free again if its
//! slot does not come.

use std::time::{Duration, Instant};

use duroxide::providers::{Provider, TagFilter, WorkItem};
use reveille_duroxide::PostgresProvider;
use reveille_testkit::TestDatabase;
use tokio::task::JoinSet;
use tokio_postgres::Client;

use crate::counted::Counted;
use crate::fault_harness::{LATE, LONG, WAIT, activity, end_turn, open, proven, start, take_activity, take_turn};

fn completed(result: &str) -> WorkItem {
    let result = result.to_owned();
    WorkItem::ActivityCompleted { instance: "order".to_owned(), execution_id: 1, id: 2, result }
}

/// Two activities, the first of which is in hand: settling it takes the second.
async fn first_of_two(provider: &PostgresProvider) -> String {
    for _ in 0..2 {
        provider.enqueue_for_worker(activity(None)).await.expect("an activity can be sent");
    }
    take_activity(provider, LONG, WAIT, None).await.expect("there are two")
}

/// The attempt of an activity that must be there soon.
async fn soon(provider: &PostgresProvider, lock: Duration) -> u32 {
    let began = Instant::now();
    let found = provider.fetch_work_item(lock, WAIT, None, &TagFilter::DefaultOnly).await;
    assert!(began.elapsed() < LATE, "{:?} late", began.elapsed());
    found.expect("a fetch succeeds").expect("the activity is there").2
}

async fn until_one_waits_for_a_lock(client: &Client) {
    let count = "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'";
    let reached = async {
        while client.query_one(count, &[]).await.expect("sessions are counted").get::<_, i64>(0) != 1 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), reached).await.expect("a statement waits for the lock");
}

/// Half of them may be late on a machine that tests share.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slot_that_goes_from_activity_to_activity_neither_claims_nor_reads_for_each() {
    const MANY: i64 = 40;
    let server = Counted::start().await;
    let provider = proven(PostgresProvider::options().url(server.url())).await;
    provider.enqueue_for_orchestrator(start("order"), None).await.unwrap();
    let token = take_turn(&provider, LONG, WAIT).await.unwrap();
    end_turn(&provider, "order", &token, Vec::new()).await.unwrap();
    for _ in 0..MANY {
        provider.enqueue_for_worker(activity(None)).await.unwrap();
    }
    server.forget().await;

    let mut slot = JoinSet::new();
    slot.spawn(async move {
        for number in 0..MANY {
            let token = take_activity(&provider, LONG, WAIT, None).await.expect("there are as many");
            assert_eq!(provider.read("order").await.unwrap().len(), 1, "activity {number}");
            provider.ack_work_item(&token, None).await.unwrap();
        }
    });
    slot.join_next().await.unwrap().unwrap();

    let (claims, reads) = (server.activity_claims("duroxide").await, server.reads("duroxide").await);
    assert!(claims <= MANY / 2, "{claims} claims for {MANY} activities");
    assert!(reads <= MANY / 2, "{reads} reads for {MANY} activities");
}

#[tokio::test]
async fn an_activity_whose_slot_does_not_come_wakes_the_other_program_uncounted() {
    let database = TestDatabase::new().await;
    let (here, there) = (open(&database).await, open(&database).await);
    let token = first_of_two(&here).await;

    here.ack_work_item(&token, Some(completed("done"))).await.unwrap();

    assert_eq!(soon(&there, LONG).await, 1);
}

#[tokio::test]
async fn a_slot_that_fetches_otherwise_than_before_gets_it_too() {
    let database = TestDatabase::new().await;
    let provider = open(&database).await;
    let token = first_of_two(&provider).await;

    provider.ack_work_item(&token, Some(completed("done"))).await.unwrap();

    assert_eq!(soon(&provider, LONG / 2).await, 1);
}

#[tokio::test]
async fn a_provider_that_closes_gives_it_back_first() {
    let database = TestDatabase::new().await;
    let (here, there) = (open(&database).await, open(&database).await);
    let token = first_of_two(&here).await;

    here.ack_work_item(&token, Some(completed("done"))).await.unwrap();
    here.close().await;

    let taken = there.fetch_work_item(LONG, Duration::ZERO, None, &TagFilter::DefaultOnly).await.unwrap();
    assert_eq!(taken.expect("it is free when the other has closed").2, 1);
}

#[tokio::test]
async fn an_ack_whose_caller_goes_away_is_completed_and_keeps_nothing() {
    let database = TestDatabase::new().await;
    let provider = open(&database).await;
    let (mut holder, watcher) = (database.client().await, database.client().await);
    let token = first_of_two(&provider).await;
    let held = holder.transaction().await.unwrap();
    held.batch_execute("lock table duroxide.message in share mode").await.unwrap();

    tokio::select! {
        _ = provider.ack_work_item(&token, Some(completed("done"))) => panic!("the messages are held"),
        () = until_one_waits_for_a_lock(&watcher) => {}
    }
    held.rollback().await.unwrap();

    assert_eq!(soon(&provider, LONG / 2).await, 1);
    let sent: i64 = watcher.query_one("select count(*) from duroxide.message", &[]).await.unwrap().get(0);
    assert_eq!(sent, 1, "the outcome was sent");
}

#[tokio::test]
async fn an_activity_that_was_taken_by_a_try_whose_answer_was_lost_is_given_back() {
    let database = TestDatabase::new().await;
    let (proxy, url) = database.proxied().await;
    let provider = proven(PostgresProvider::options().url(url)).await;
    let other = open(&database).await;
    let token = first_of_two(&provider).await;

    proxy.cut_after_sending("the-answer-is-lost");
    provider.ack_work_item(&token, Some(completed("the-answer-is-lost"))).await.unwrap();

    assert_eq!(soon(&other, LONG).await, 1);
}

/// Otherwise the owner of a session would be passed over for later activities of no session.
#[tokio::test]
async fn while_an_activity_of_a_session_is_due_nothing_later_is_taken_before_it() {
    let database = TestDatabase::new().await;
    let provider = open(&database).await;
    let owner = Some(("one", LONG));
    provider.enqueue_for_worker(activity(None)).await.unwrap();
    let token = take_activity(&provider, LONG, WAIT, owner).await.unwrap();
    provider.enqueue_for_worker(activity(Some("cart"))).await.unwrap();
    provider.enqueue_for_worker(activity(None)).await.unwrap();

    provider.ack_work_item(&token, Some(completed("done"))).await.unwrap();
    let client = database.client().await;
    let locked: i64 = client
        .query_one("select count(*) from duroxide.activity where lock_token is not null", &[])
        .await
        .unwrap()
        .get(0);

    assert_eq!(locked, 0);
}
