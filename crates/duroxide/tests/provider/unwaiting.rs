//! A program whose fetches do not wait, as in programs written for duroxide-pg: what it does wakes
//! the programs that wait.

use std::time::Duration;

use duroxide::providers::{Provider, WorkItem};
use reveille::database::{Database, DatabaseError, DatabaseOptions};
use reveille_duroxide::{LongPollConfig, PostgresProvider, ProviderOpenError};
use reveille_testkit::TestDatabase;

use crate::fault_harness::{
    Due, LONG, WAIT, about_order, activity, clock, end_turn, proven, start, started, take_activity, take_turn, woken,
};

const SECOND: Duration = Duration::from_secs(1);
/// Too long to explain anything in a test.
const NEVER: Duration = Duration::from_secs(3600);

/// One program that waits, without a heartbeat that could find work, and one that does not wait.
async fn two(database: &TestDatabase) -> (PostgresProvider, PostgresProvider) {
    let shared = Database::connect(DatabaseOptions::new(database.url()).heartbeat(NEVER)).await;
    let shared = shared.expect("connects");
    shared.migrate().await.expect("migrates");
    let waiting = proven(PostgresProvider::options().database(&shared)).await;
    (waiting, PostgresProvider::new(&database.url()).await.expect("opens"))
}

#[tokio::test]
async fn what_it_sends_wakes_others_and_the_hint_leaves_before_it_may_exit() {
    let database = TestDatabase::new().await;
    let (waiting, sending) = two(&database).await;

    woken(&database, Due::Now, take_turn(&waiting, LONG, WAIT), async {
        sending.enqueue_for_orchestrator(start("order"), None).await.unwrap();
        assert!(sending.database().wake_figures().sent > 0, "no hint is left to be sent later");
    })
    .await;
    woken(&database, Due::Now, take_activity(&waiting, LONG, WAIT, None), async {
        sending.enqueue_for_worker(activity(None)).await.unwrap();
    })
    .await;
    woken(&database, Due::In(SECOND), take_turn(&waiting, LONG, WAIT), async {
        sending.enqueue_for_orchestrator(start("later"), Some(SECOND)).await.unwrap();
    })
    .await;
    assert!(!sending.database().link().is_proven(), "it has no listener");
}

#[tokio::test]
async fn a_turn_that_it_gives_back_wakes_others() {
    for (delay, due) in [(None, Due::Now), (Some(SECOND), Due::In(SECOND))] {
        let database = TestDatabase::new().await;
        let (waiting, polling) = two(&database).await;
        polling.enqueue_for_orchestrator(start("order"), None).await.unwrap();
        let token = take_turn(&polling, LONG, Duration::ZERO).await.unwrap();

        woken(&database, due, take_turn(&waiting, LONG, WAIT), async {
            polling.abandon_orchestration_item(&token, delay, false).await.unwrap();
        })
        .await;
    }
}

#[tokio::test]
async fn an_activity_that_it_gives_back_wakes_others() {
    for (delay, due) in [(None, Due::Now), (Some(SECOND), Due::In(SECOND))] {
        let database = TestDatabase::new().await;
        let (waiting, polling) = two(&database).await;
        polling.enqueue_for_worker(activity(None)).await.unwrap();
        let token = take_activity(&polling, LONG, Duration::ZERO, None).await.unwrap();

        woken(&database, due, take_activity(&waiting, LONG, WAIT, None), async {
            polling.abandon_work_item(&token, delay, false).await.unwrap();
        })
        .await;
    }
}

#[tokio::test]
async fn the_end_of_its_turn_wakes_others_for_what_the_turn_asked_for() {
    let database = TestDatabase::new().await;
    let (waiting, polling) = two(&database).await;
    polling.enqueue_for_orchestrator(start("order"), None).await.unwrap();
    let token = take_turn(&polling, LONG, Duration::ZERO).await.unwrap();

    woken(&database, Due::Now, take_activity(&waiting, LONG, WAIT, None), async {
        let (history, work) = (vec![started("order")], vec![activity(None)]);
        let ended = polling.ack_orchestration_item(&token, 1, history, work, vec![], about_order(), vec![]).await;
        ended.unwrap();
    })
    .await;

    polling.enqueue_for_orchestrator(start("parent"), None).await.unwrap();
    let token = take_turn(&polling, LONG, Duration::ZERO).await.unwrap();
    woken(&database, Due::Now, take_turn(&waiting, LONG, WAIT), async {
        end_turn(&polling, "parent", &token, vec![start("child")]).await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn the_end_of_its_activity_wakes_others_for_the_turn() {
    let database = TestDatabase::new().await;
    let (waiting, polling) = two(&database).await;
    polling.enqueue_for_orchestrator(start("order"), None).await.unwrap();
    let turn = take_turn(&polling, LONG, Duration::ZERO).await.unwrap();
    end_turn(&polling, "order", &turn, Vec::new()).await.unwrap();
    polling.enqueue_for_worker(activity(None)).await.unwrap();
    let token = take_activity(&polling, LONG, Duration::ZERO, None).await.unwrap();
    let result = "charged".to_owned();
    let completion = WorkItem::ActivityCompleted { instance: "order".to_owned(), execution_id: 1, id: 2, result };

    woken(&database, Due::Now, take_turn(&waiting, LONG, WAIT), async {
        polling.ack_work_item(&token, Some(completion)).await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn the_end_of_its_lock_wakes_others_when_it_dies() {
    let database = TestDatabase::new().await;
    let (waiting, polling) = two(&database).await;
    polling.enqueue_for_orchestrator(start("order"), None).await.unwrap();
    let since = clock(&database.client().await).await;
    let announced = polling.database().wake_figures().announced;
    assert!(take_turn(&polling, SECOND * 2, Duration::ZERO).await.is_some());
    assert!(polling.database().wake_figures().announced > announced, "also to fetches that claimed before");

    woken(&database, Due::At(since + SECOND * 2), take_turn(&waiting, LONG, WAIT), async {}).await;
}

/// Nodes find each other in these tables: without them every call would wait two seconds for a hint
/// that cannot leave.
#[tokio::test]
async fn it_makes_the_tables_of_the_engine_in_a_database_of_its_own_and_refuses_a_shared_one_without_them() {
    let database = TestDatabase::empty().await;
    let shared = Database::connect(DatabaseOptions::new(database.url())).await.unwrap();
    let options = PostgresProvider::options().database(&shared).long_poll(LongPollConfig::default());

    let refused = options.clone().open().await.unwrap_err();
    let own = PostgresProvider::new(&database.url()).await.unwrap();
    own.enqueue_for_orchestrator(start("order"), None).await.unwrap();

    assert!(
        matches!(refused, ProviderOpenError::Database(DatabaseError::SchemaMissing { .. })),
        "{refused:?}: nodes could not find each other"
    );
    assert!(own.database().wake_figures().sent > 0);
    options.open().await.unwrap().close().await;
}
