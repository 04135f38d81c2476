//! The verification list of the requirements for jobs, see `docs/internal/requirements.md`.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use reveille::database::DatabaseOptions;
use reveille::jobs::{JobEvent, JobsOptions, NewJob, Outcome, Worker};
use serde_json::Value;

use crate::support::{Fixture, NEVER, Node, all_new, job, soon};

#[tokio::test]
async fn happy_path_an_enqueued_job_wakes_a_worker_and_is_completed() {
    let fixture = Fixture::new().await;
    let worker = fixture.worker().start().await.unwrap();

    let id = fixture.enqueue(job("ok")).await;
    fixture.completed(id).await;

    assert_eq!(fixture.count("reveille.job_done where state = 'done'").await, 1);
    assert_eq!(fixture.count("reveille.job").await, 0);
    soon(worker.drain(Duration::from_secs(5))).await;
}

/// The job is written by hand, so no hint is sent: the heartbeat finds it.
#[tokio::test]
async fn missed_notify_a_job_that_was_not_announced_is_found_by_the_heartbeat() {
    let fixture = Fixture::new().await;
    let options = DatabaseOptions::new(fixture.db.url()).heartbeat(Duration::from_millis(300));
    let node = Node::at(options, JobsOptions::default()).await;
    let _worker = node.worker().start().await.unwrap();
    let first = node.enqueue(job("ok")).await;
    node.completed(first).await;

    fixture
        .sql("with body as (insert into reveille.job_body (kind, queue, priority, run_at, max_attempts, args)
              values ('ok', 'default', 5, now(), 4, '{}') returning id)
              insert into reveille.job (id, due_at, max_attempts, priority, queue) select id, now(), 4, 5, 'default' from body")
        .await;

    node.events.until(|event| matches!(event, JobEvent::Completed { job, .. } if job.id != first)).await;
}

/// The same with a producer that does not notify: a claim after the fallback interval finds it.
#[tokio::test]
async fn missed_notify_with_notify_off_a_job_is_found_after_the_fallback_interval() {
    let fixture = Fixture::new().await;
    let options = JobsOptions::default().fallback_interval(Duration::from_millis(100));
    let node = Node::at(DatabaseOptions::new(fixture.db.url()).heartbeat(NEVER), options).await;
    let _worker = node.worker().start().await.unwrap();
    let silent = Node::at(DatabaseOptions::new(fixture.db.url()), JobsOptions::default().notify(false)).await;

    let id = silent.enqueue(job("ok")).await;

    node.completed(id).await;
}

/// Both processes are configured from outside: no hint is sent, and nothing is lost.
#[tokio::test]
async fn the_switches_of_an_environment_turn_notify_off_and_set_the_fallback_interval() {
    let fixture = Fixture::new().await;
    let environment = |name: &str| match name {
        "REVEILLE_NOTIFY" => Some("off".to_owned()),
        "REVEILLE_FALLBACK_INTERVAL_S" => Some("0.1".to_owned()),
        _ => None,
    };
    let node = async || {
        let options = JobsOptions::from_environment(environment).unwrap();
        Node::at(DatabaseOptions::new(fixture.db.url()).heartbeat(NEVER), options).await
    };
    let (node, silent) = (node().await, node().await);
    let waiting = silent.enqueue(job("ok")).await;
    let _worker = node.worker().start().await.unwrap();
    node.completed(waiting).await;
    node.events.until(|event| *event == JobEvent::Polled).await;

    let id = silent.enqueue(job("ok")).await;
    node.completed(id).await;

    assert_eq!(node.events.count(|event| *event == JobEvent::Notified), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_workers_never_run_a_job_twice() {
    let fixture = Fixture::new().await;
    let (one, other) = (fixture.another().await, fixture.another().await);
    let runs = Arc::new(std::sync::Mutex::new(Vec::new()));
    let mut workers = Vec::new();
    for node in [&one, &other] {
        let runs = Arc::clone(&runs);
        let worker = Worker::builder(&node.jobs).slots(8).handler::<Value, _>("ok", move |_, job| {
            runs.lock().unwrap().push(job.id());
            async {}
        });
        workers.push(worker.start().await.unwrap());
    }

    let ids = all_new(fixture.jobs.enqueue_many((0..500).map(|_| job("ok")).collect()).await);
    let done = async {
        loop {
            if one.completions().len() + other.completions().len() >= 500 {
                break;
            }
            tokio::task::yield_now().await;
        }
    };
    soon(done).await;

    let runs = runs.lock().unwrap().clone();
    assert_eq!(runs.len(), 500);
    assert_eq!(runs.iter().collect::<HashSet<_>>(), ids.iter().collect());
}

/// The worker vanishes while the job runs: the lease ends, and the end of it wakes another.
#[tokio::test]
async fn crash_recovery_a_job_whose_worker_vanished_runs_again_when_its_lease_ends() {
    let fixture = Fixture::new().await;
    let doomed = fixture.another().await;
    let worker = Worker::builder(&doomed.jobs).handler::<Value, _>("ok", |_, _| std::future::pending::<()>());
    let worker = worker.start().await.unwrap();
    let id = fixture.enqueue(job("ok")).await;
    doomed.started(id, 1).await;
    drop(worker);
    doomed.database.close().await;
    // The lease is not renewed any more: the time until its end can be shortened without a race.
    fixture.sql("update reveille.job set due_at = clock_timestamp() + interval '300 ms'").await;
    let _heir = fixture.worker().start().await.unwrap();

    fixture.completed(id).await;

    assert_eq!(fixture.explain(id).await.attempt, 2);
}

/// A job that is run twice finds its item done, and changes nothing: the item's own state is the
/// guard.
#[tokio::test]
async fn idempotency_processing_twice_leaves_the_item_as_after_the_first() {
    let fixture = Fixture::new().await;
    fixture
        .sql("create table item (id int primary key, state text, changes int); insert into item values (1, 'new', 0)")
        .await;
    let client = Arc::new(fixture.client().await);
    let enrich = Worker::builder(&fixture.jobs).handler::<Value, _>("enrich", move |_, job| {
        let client = Arc::clone(&client);
        async move {
            let change = "update item set state = 'ready', changes = changes + 1 where id = 1 and state = 'new'";
            client.execute(change, &[]).await.map_err(|error| error.to_string())?;
            // The first time it dies after its work and before its end is recorded.
            if job.attempt() == 1 { Err("crashed".to_owned()) } else { Ok(()) }
        }
    });
    let _worker = enrich.start().await.unwrap();

    let id = fixture.enqueue(job("enrich")).await;
    fixture.completed(id).await;

    assert_eq!(fixture.count("item where state = 'ready' and changes = 1").await, 1);
}

#[tokio::test]
async fn a_hundred_items_enqueued_rapidly_are_all_done() {
    let fixture = Fixture::new().await;
    let count = Arc::new(AtomicUsize::new(0));
    let counting = Arc::clone(&count);
    let worker = Worker::builder(&fixture.jobs).slots(4).handler::<Value, _>("ok", move |_, _| {
        counting.fetch_add(1, Ordering::SeqCst);
        async { Outcome::Done }
    });
    let _worker = worker.start().await.unwrap();
    let client = fixture.client().await;

    for n in 0..100 {
        let args = format!("{{\"item\": {n}}}");
        client.execute("select reveille.enqueue('ok', $1::text)", &[&args]).await.unwrap();
    }

    let mut events = fixture.events.reader();
    for _ in 0..100 {
        events.until(|event| matches!(event, JobEvent::Completed { .. })).await;
    }
    assert_eq!(count.load(Ordering::SeqCst), 100);
    assert_eq!(fixture.count("reveille.job_done where state = 'done'").await, 100);
}

/// Every log line about a job names its item, when the producer named one.
#[tokio::test]
async fn events_name_the_item_of_the_metadata() {
    let fixture = Fixture::new().await;
    let _worker = fixture.worker().start().await.unwrap();
    let of_item = NewJob::new("ok", &1).unwrap().metadata(&serde_json::json!({"item_id": "i-7"})).unwrap();

    let id = fixture.enqueue(of_item).await;
    fixture.completed(id).await;

    let named =
        |event: &JobEvent| matches!(event, JobEvent::Completed { job, .. } if job.item_id.as_deref() == Some("i-7"));
    assert_eq!(fixture.events.count(named), 1);
}
