//! Two programs, and a connection that brings hints and is lost.

use std::time::Duration;

use duroxide::providers::Provider;
use reveille_testkit::TestDatabase;

use crate::fault_harness::{LONG, WAIT, activity, open, start, take_activity, take_turn, woken};

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test]
async fn a_message_wakes_the_other_program() {
    let database = TestDatabase::new().await;
    let (here, there) = (open(&database).await, open(&database).await);

    woken(Duration::ZERO, take_turn(&there, LONG, WAIT), async {
        here.enqueue_for_orchestrator(start("order"), None).await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn an_activity_that_is_given_back_with_a_delay_wakes_the_other_program() {
    let database = TestDatabase::new().await;
    let (here, there) = (open(&database).await, open(&database).await);
    here.enqueue_for_worker(activity(None)).await.unwrap();
    let token = take_activity(&here, LONG, WAIT, None).await.unwrap();

    woken(SECOND, take_activity(&there, LONG, WAIT, None), async {
        here.abandon_work_item(&token, Some(SECOND), false).await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn a_program_that_dies_leaves_its_turn_to_the_other_when_the_lock_ends() {
    let database = TestDatabase::new().await;
    let (here, there) = (open(&database).await, open(&database).await);
    here.enqueue_for_orchestrator(start("order"), None).await.unwrap();
    assert!(take_turn(&here, SECOND * 2, WAIT).await.is_some());
    here.close().await;

    woken(SECOND * 2, take_turn(&there, LONG, WAIT), async {}).await;
}

#[tokio::test]
async fn a_message_sent_while_the_listener_is_gone_is_found() {
    let database = TestDatabase::new().await;
    let provider = open(&database).await;
    let client = database.client().await;
    let terminate = "select pg_terminate_backend(pid) from pg_stat_activity
         where datname = current_database() and application_name like '% listen'";

    woken(Duration::ZERO, take_turn(&provider, LONG, WAIT), async {
        assert_eq!(client.query(terminate, &[]).await.unwrap().len(), 1);
        provider.enqueue_for_orchestrator(start("order"), None).await.unwrap();
    })
    .await;
}
