//! Two programs, and a LISTEN connection that is lost.

use std::time::Duration;

use duroxide::providers::Provider;
use reveille_duroxide::PostgresProvider;
use reveille_testkit::{TestDatabase, connect};

use crate::fault_harness::{Due, LONG, WAIT, activity, clock, open, start, take_activity, take_turn, woken};

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test]
async fn a_message_wakes_the_other_program() {
    let database = TestDatabase::new().await;
    let (here, there) = (open(&database).await, open(&database).await);

    woken(&database, Due::Now, take_turn(&there, LONG, WAIT), async {
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

    woken(&database, Due::In(SECOND), take_activity(&there, LONG, WAIT, None), async {
        here.abandon_work_item(&token, Some(SECOND), false).await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn a_program_that_dies_leaves_its_turn_to_the_other_when_the_lock_ends() {
    let database = TestDatabase::new().await;
    let (here, there) = (open(&database).await, open(&database).await);
    here.enqueue_for_orchestrator(start("order"), None).await.unwrap();
    let since = clock(&database.client().await).await;
    assert!(take_turn(&here, SECOND * 2, WAIT).await.is_some());
    here.close().await;

    woken(&database, Due::At(since + SECOND * 2), take_turn(&there, LONG, WAIT), async {}).await;
}

/// No session can be opened meanwhile, so that neither a hint nor a new listener brings the
/// message.
#[tokio::test]
async fn a_message_sent_while_the_listener_is_gone_is_found() {
    let database = TestDatabase::new().await;
    let here = open(&database).await;
    // Sends, and fetches nothing: it has no listener.
    let there = PostgresProvider::options().url(database.url()).open().await.unwrap();
    let (admin, elsewhere) =
        (database.client().await, connect(&database.url().replace(database.name(), "postgres")).await);
    there.enqueue_for_orchestrator(start("first"), None).await.unwrap();
    assert!(take_turn(&here, LONG, WAIT).await.is_some(), "and its hints arrive already");
    let terminate = "select pg_terminate_backend(pid, 20000) from pg_stat_activity
         where datname = current_database() and application_name like '% listen'";
    let accept = async |accept: bool| {
        let alter = format!("alter database {} allow_connections {accept}", database.name());
        elsewhere.batch_execute(&alter).await.unwrap();
    };

    woken(&database, Due::Now, take_turn(&here, LONG, WAIT), async {
        accept(false).await;
        assert_eq!(admin.query(terminate, &[]).await.unwrap().len(), 1);
        there.enqueue_for_orchestrator(start("order"), None).await.unwrap();
    })
    .await;

    assert!(!here.database().link().is_proven(), "it is still gone");
    accept(true).await;
}
