//! One program: what is given back, delayed, or left behind by a slot that died.

use std::time::Duration;

use duroxide::providers::{Provider, WorkItem};
use reveille_testkit::{TestDatabase, connect};

use crate::fault_harness::{Due, LONG, WAIT, activity, clock, open, start, take_activity, take_turn, woken};

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test]
async fn a_message_wakes_a_waiting_fetch() {
    let database = TestDatabase::new().await;
    let provider = open(&database).await;

    woken(&database, Due::Now, take_turn(&provider, LONG, WAIT), async {
        provider.enqueue_for_orchestrator(start("order"), None).await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn a_delayed_message_wakes_when_it_becomes_visible() {
    let database = TestDatabase::new().await;
    let provider = open(&database).await;

    woken(&database, Due::In(SECOND), take_turn(&provider, LONG, WAIT), async {
        provider.enqueue_for_orchestrator(start("order"), Some(SECOND)).await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn a_turn_that_is_given_back_wakes_at_once() {
    let database = TestDatabase::new().await;
    let provider = open(&database).await;
    provider.enqueue_for_orchestrator(start("order"), None).await.unwrap();
    let token = take_turn(&provider, LONG, WAIT).await.unwrap();

    woken(&database, Due::Now, take_turn(&provider, LONG, WAIT), async {
        provider.abandon_orchestration_item(&token, None, false).await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn a_turn_that_is_given_back_with_a_delay_wakes_after_it() {
    let database = TestDatabase::new().await;
    let provider = open(&database).await;
    provider.enqueue_for_orchestrator(start("order"), None).await.unwrap();
    let token = take_turn(&provider, LONG, WAIT).await.unwrap();

    woken(&database, Due::In(SECOND), take_turn(&provider, LONG, WAIT), async {
        provider.abandon_orchestration_item(&token, Some(SECOND), false).await.unwrap();
    })
    .await;
}

/// Otherwise a claim between two of them takes the order and leaves its cancellation for a turn
/// that never comes.
#[tokio::test]
async fn what_was_taken_together_comes_back_at_one_moment() {
    let database = TestDatabase::new().await;
    let provider = open(&database).await;
    provider.enqueue_for_orchestrator(start("order"), None).await.unwrap();
    for number in 0..100 {
        let (instance, name) = ("order".to_owned(), format!("step-{number}"));
        let event = WorkItem::ExternalRaised { instance, name, data: String::new() };
        provider.enqueue_for_orchestrator(event, None).await.unwrap();
    }
    let token = take_turn(&provider, LONG, WAIT).await.unwrap();

    provider.abandon_orchestration_item(&token, Some(LONG), false).await.unwrap();

    let moments = "select count(*), count(distinct visible_at) from duroxide.message where visible_at > now()";
    let row = connect(&database.url()).await.query_one(moments, &[]).await.unwrap();
    assert_eq!((row.get::<_, i64>(0), row.get::<_, i64>(1)), (101, 1));
}

#[tokio::test]
async fn an_activity_wakes_and_so_does_giving_it_back() {
    let database = TestDatabase::new().await;
    let provider = open(&database).await;

    woken(&database, Due::Now, take_activity(&provider, LONG, WAIT, None), async {
        provider.enqueue_for_worker(activity(None)).await.unwrap();
    })
    .await;

    provider.enqueue_for_worker(activity(None)).await.unwrap();
    let token = take_activity(&provider, LONG, WAIT, None).await.unwrap();
    woken(&database, Due::In(SECOND), take_activity(&provider, LONG, WAIT, None), async {
        provider.abandon_work_item(&token, Some(SECOND), false).await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn the_end_of_a_dead_slots_lock_wakes() {
    let database = TestDatabase::new().await;
    let provider = open(&database).await;
    provider.enqueue_for_orchestrator(start("order"), None).await.unwrap();
    let since = clock(&database.client().await).await;
    assert!(take_turn(&provider, SECOND, WAIT).await.is_some());

    woken(&database, Due::At(since + SECOND), take_turn(&provider, LONG, WAIT), async {}).await;
}

#[tokio::test]
async fn the_end_of_a_lock_on_an_activity_wakes() {
    let database = TestDatabase::new().await;
    let provider = open(&database).await;
    provider.enqueue_for_worker(activity(None)).await.unwrap();
    let since = clock(&database.client().await).await;
    assert!(take_activity(&provider, SECOND, WAIT, None).await.is_some());

    woken(&database, Due::At(since + SECOND), take_activity(&provider, LONG, WAIT, None), async {}).await;
}

#[tokio::test]
async fn a_session_passes_to_another_owner_when_its_lock_ends() {
    let database = TestDatabase::new().await;
    let provider = open(&database).await;
    provider.enqueue_for_worker(activity(Some("cart"))).await.unwrap();
    let since = clock(&database.client().await).await;
    let first = take_activity(&provider, LONG, WAIT, Some(("one", SECOND))).await.unwrap();
    provider.ack_work_item(&first, None).await.unwrap();
    provider.enqueue_for_worker(activity(Some("cart"))).await.unwrap();

    let other = take_activity(&provider, LONG, WAIT, Some(("other", SECOND)));
    woken(&database, Due::At(since + SECOND), other, async {}).await;
}

#[tokio::test]
async fn a_fetch_that_goes_away_keeps_nothing() {
    let database = TestDatabase::new().await;
    let provider = open(&database).await;
    for _ in 0..20 {
        let gone = tokio::time::timeout(Duration::from_millis(1), take_turn(&provider, LONG, WAIT));
        let (gone, _) = tokio::join!(gone, provider.enqueue_for_orchestrator(start("order"), None));
        // One that was quicker than its client's patience did get it, and gives it back as a client
        // would.
        if let Ok(Some(token)) = gone {
            provider.abandon_orchestration_item(&token, None, false).await.unwrap();
        }
    }

    let taken = take_turn(&provider, LONG, WAIT).await;

    assert!(taken.is_some());
}
