//! Answers that are lost, and servers that refuse for a while.

use std::time::{Duration, Instant};

use duroxide::EventKind;
use duroxide::providers::{Provider, WorkItem};
use reveille_duroxide::PostgresProvider;
use reveille_testkit::{FaultProxy, TestDatabase};

use crate::fault_harness::{
    Due, LONG, WAIT, about_order, activity, end_turn, event, open, proven, start, started, take_activity, take_turn,
    woken,
};

/// Sent once, in the statement whose answer is to be lost.
const MARK: &str = "the-answer-is-lost";

/// A provider whose connections to the database can be cut.
async fn open_proxied(database: &TestDatabase) -> (FaultProxy, PostgresProvider) {
    let (proxy, url) = database.proxied().await;
    (proxy, proven(PostgresProvider::options().url(url)).await)
}

/// Ends the first turn with an event that contains [`MARK`] and an activity.
async fn end_marked_turn(provider: &PostgresProvider, token: &str) -> Result<(), duroxide::providers::ProviderError> {
    let status = EventKind::CustomStatusUpdated { status: Some(MARK.to_owned()) };
    let history = vec![started("order"), event("order", 2, status)];
    let work = vec![activity(None)];
    provider.ack_orchestration_item(token, 1, history, work, Vec::new(), about_order(), Vec::new()).await
}

async fn count(database: &TestDatabase, table: &str) -> i64 {
    let count = format!("select count(*) from duroxide.{table}");
    database.client().await.query_one(&count, &[]).await.expect("rows are counted").get(0)
}

#[tokio::test]
async fn a_turn_whose_answer_is_lost_after_the_commit_is_one_turn() {
    let database = TestDatabase::new().await;
    let (proxy, provider) = open_proxied(&database).await;
    provider.enqueue_for_orchestrator(start("order"), None).await.unwrap();
    let token = take_turn(&provider, LONG, WAIT).await.unwrap();

    proxy.cut_after_sending(MARK);
    end_marked_turn(&provider, &token).await.unwrap();

    assert_eq!(provider.read("order").await.unwrap().len(), 2);
    assert_eq!(count(&database, "activity").await, 1, "scheduled once");
    assert_eq!(count(&database, "message").await, 0);
    assert_eq!(provider.get_custom_status("order", 0).await.unwrap(), Some((Some(MARK.to_owned()), 1)));
}

/// The first try is still running when the second begins: if the second trusted what it saw when it
/// began, it would report the turn as lost, and the runtime would fail the workflow.
#[tokio::test]
async fn a_turn_that_is_committed_while_it_is_tried_again_is_one_turn() {
    let database = TestDatabase::new().await;
    let (proxy, provider) = open_proxied(&database).await;
    provider.enqueue_for_orchestrator(start("order"), None).await.unwrap();
    let token = take_turn(&provider, LONG, WAIT).await.unwrap();
    let (mut holder, watcher) = (database.client().await, database.client().await);
    let held = holder.transaction().await.unwrap();
    held.execute("select from duroxide.mailbox for update", &[]).await.unwrap();
    let both_wait = async {
        let blocked =
            "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'";
        while watcher.query_one(blocked, &[]).await.unwrap().get::<_, i64>(0) < 2 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        held.rollback().await.unwrap();
    };

    proxy.cut_after_sending(MARK);
    let (ended, waited) =
        tokio::join!(end_marked_turn(&provider, &token), tokio::time::timeout(Duration::from_secs(20), both_wait));

    waited.expect("both tries wait for the mailbox");
    ended.unwrap();
    assert_eq!(provider.read("order").await.unwrap().len(), 2);
    assert_eq!(count(&database, "activity").await, 1, "scheduled once");
}

#[tokio::test]
async fn an_activity_whose_answer_is_lost_after_the_commit_is_done_once() {
    let database = TestDatabase::new().await;
    let (proxy, provider) = open_proxied(&database).await;
    provider.enqueue_for_worker(activity(None)).await.unwrap();
    let token = take_activity(&provider, LONG, WAIT, None).await.unwrap();
    let result = MARK.to_owned();
    let completion = WorkItem::ActivityCompleted { instance: "order".to_owned(), execution_id: 1, id: 2, result };

    proxy.cut_after_sending(MARK);
    provider.ack_work_item(&token, Some(completion)).await.unwrap();

    assert_eq!(count(&database, "activity").await, 0);
    assert_eq!(count(&database, "message").await, 1, "the outcome was sent once");
}

/// A fetch that waits must be woken, although the provider that gave the turn back got no answer.
#[tokio::test]
async fn a_turn_that_is_given_back_wakes_others_when_the_answer_is_lost() {
    let database = TestDatabase::new().await;
    let (proxy, provider) = open_proxied(&database).await;
    let other = open(&database).await;
    provider.enqueue_for_orchestrator(start("order"), None).await.unwrap();
    let token = take_turn(&provider, LONG, WAIT).await.unwrap();

    woken(&database, Due::Now, take_turn(&other, LONG, WAIT), async {
        proxy.cut_after_sending(token.split(':').next().unwrap());
        provider.abandon_orchestration_item(&token, None, false).await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn an_activity_that_is_given_back_wakes_others_when_the_answer_is_lost() {
    let database = TestDatabase::new().await;
    let (proxy, provider) = open_proxied(&database).await;
    let other = open(&database).await;
    provider.enqueue_for_worker(activity(None)).await.unwrap();
    let token = take_activity(&provider, LONG, WAIT, None).await.unwrap();

    woken(&database, Due::Now, take_activity(&other, LONG, WAIT, None), async {
        proxy.cut_after_sending(&token);
        provider.abandon_work_item(&token, None, false).await.unwrap();
    })
    .await;
}

/// The sender gets an error although the message was stored. The message wakes a fetch at once, not
/// with the next heartbeat.
#[tokio::test]
async fn a_message_whose_answer_is_lost_wakes_nevertheless() {
    let database = TestDatabase::new().await;
    let (proxy, provider) = open_proxied(&database).await;
    let other = open(&database).await;

    woken(&database, Due::Now, take_turn(&other, LONG, WAIT), async {
        proxy.cut_after_sending(MARK);
        let refused = provider.enqueue_for_orchestrator(start(MARK), None).await.unwrap_err();
        assert!(refused.is_retryable(), "{refused:?}");
    })
    .await;
}

/// A serialization failure.
const COLLIDED: &str = "40001";
/// The code of a server that accepts no writes.
const READ_ONLY: &str = "25006";

/// Refuses the first `times` histories that are written, with this SQLSTATE.
async fn refuse(database: &TestDatabase, code: &str, times: i64) {
    let make = format!(
        "create sequence public.refusals;
         create function refuse() returns trigger language plpgsql as $$
         begin
           if nextval('public.refusals') <= {times} then raise exception 'not now' using errcode = '{code}'; end if;
           return new;
         end $$;
         create trigger refuse before insert on duroxide.history for each row execute function refuse()"
    );
    database.client().await.batch_execute(&make).await.expect("a trigger can be made");
}

#[tokio::test]
async fn a_turn_that_is_refused_for_a_moment_is_tried_again_and_committed_once() {
    let database = TestDatabase::new().await;
    let provider = open(&database).await;
    provider.enqueue_for_orchestrator(start("order"), None).await.unwrap();
    let token = take_turn(&provider, LONG, WAIT).await.unwrap();
    refuse(&database, COLLIDED, 3).await;

    end_turn(&provider, "order", &token, Vec::new()).await.unwrap();

    assert_eq!(provider.read("order").await.unwrap().len(), 1);
    let tries: i64 = database.client().await.query_one("select last_value from refusals", &[]).await.unwrap().get(0);
    assert_eq!(tries, 4);
}

/// Sessions on the demoted server refuse every write, and a new connection finds no primary yet.
#[tokio::test]
async fn a_turn_that_ends_during_a_failover_is_waited_out() {
    let database = TestDatabase::new().await;
    let provider = open(&database).await;
    provider.enqueue_for_orchestrator(start("order"), None).await.unwrap();
    let token = take_turn(&provider, LONG, WAIT).await.unwrap();
    let admin = database.client().await;
    refuse(&database, READ_ONLY, i64::MAX).await;
    let demote = format!("alter database {} set default_transaction_read_only = on", database.name());
    admin.batch_execute(&demote).await.unwrap();
    let promotion = async {
        let left = "select count(*) from pg_stat_activity
             where datname = current_database() and application_name like '% caller'";
        while admin.query_one(left, &[]).await.unwrap().get::<_, i64>(0) > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let promote = format!("alter database {} reset default_transaction_read_only", database.name());
        admin.batch_execute(&format!("{promote}; drop trigger refuse on duroxide.history")).await.unwrap();
    };

    let (ended, promoted) =
        tokio::join!(end_turn(&provider, "order", &token, Vec::new()), tokio::time::timeout(WAIT / 3, promotion));

    promoted.expect("no session of the demoted server is kept");
    ended.unwrap();
    assert_eq!(provider.read("order").await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_turn_is_not_tried_again_after_its_lock_ended() {
    let database = TestDatabase::new().await;
    let provider = open(&database).await;
    provider.enqueue_for_orchestrator(start("order"), None).await.unwrap();
    let began = Instant::now();
    let lock = Duration::from_secs(1);
    let token = take_turn(&provider, lock, WAIT).await.unwrap();
    refuse(&database, COLLIDED, i64::MAX).await;

    let refused = end_turn(&provider, "order", &token, Vec::new()).await.unwrap_err();

    assert!(!refused.is_retryable(), "{refused:?}");
    assert!(refused.message.contains("lock ended"), "{refused:?}");
    assert!(began.elapsed() >= lock, "it was tried as long as the lock lasted");
    assert!(began.elapsed() < Duration::from_secs(10), "and not much longer: {:?}", began.elapsed());
    assert_eq!(provider.read("order").await.unwrap(), []);
}
