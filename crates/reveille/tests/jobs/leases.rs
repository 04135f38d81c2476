//! Leases: how long each lasts, and what a job is once its own has ended.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use reveille::jobs::{Cancelled, Job, JobEvent, JobId, State, Worker};
use serde_json::Value;
use tokio_postgres::Client;

use crate::support::{Fixture, job, soon, until_blocked, watched};

/// Seconds until the job's lease ends.
async fn lease_left(client: &Client, id: JobId) -> f64 {
    let left = "select extract(epoch from due_at - clock_timestamp())::float8 from reveille.job where id = $1";
    client.query_one(left, &[&id.0]).await.expect("is there").get(0)
}

async fn lease_end(client: &Client, id: JobId) -> std::time::SystemTime {
    client.query_one("select due_at from reveille.job where id = $1", &[&id.0]).await.expect("is there").get(0)
}

/// Which transaction updated which job.
const NOTE_UPDATES: &str = "
    create table public.updated (id bigint, tx xid8);
    create function public.note_update() returns trigger language plpgsql as $$
    begin
      insert into public.updated values (new.id, pg_current_xact_id());
      return new;
    end $$;
    create trigger note_update after update on reveille.job for each row execute function public.note_update()";

/// Both workers share one batcher. A settlement that waits for a lock is the barrier: the renewals
/// of both gather behind it and are sent in one statement.
#[tokio::test]
async fn renewals_that_leave_in_one_statement_keep_each_jobs_own_lease() {
    let (wakes, options) = watched();
    let fixture = Fixture::with(options).await;
    let runs = Arc::new(AtomicUsize::new(0));
    let waiting = |queue: &str, lease: u64| {
        let runs = Arc::clone(&runs);
        let worker = Worker::builder(&fixture.jobs).queue(queue, 1).lease(Duration::from_secs(lease));
        worker.handler::<Value, _>("wait", move |_, _: Job| {
            runs.fetch_add(1, Ordering::SeqCst);
            std::future::pending::<()>()
        })
    };
    let long = waiting("long", 30).start().await.unwrap();
    let short = waiting("short", 1).start().await.unwrap();
    let _failing = fixture.worker().start().await.unwrap();
    wakes.until(|event| matches!(event, reveille_wake::Event::Link(link) if link.is_proven())).await;
    let patient = fixture.enqueue(job("wait").queue("long")).await;
    let hasty = fixture.enqueue(job("wait").queue("short")).await;
    fixture.started(patient, 1).await;
    fixture.started(hasty, 1).await;
    let (watcher, barrier) = (fixture.client().await, fixture.client().await);
    let before = lease_end(&watcher, patient).await;
    watcher.batch_execute(NOTE_UPDATES).await.unwrap();

    barrier.batch_execute("begin; lock table reveille.job_error").await.unwrap();
    fixture.enqueue(job("no").max_attempts(1)).await;
    until_blocked(&watcher, "settle_jobs(").await;
    for worker in [short.name(), long.name()] {
        // To attend to its jobs, as if one of them were to be cancelled: it renews all of them at
        // once.
        let hint = format!("select pg_notify(reveille.hint_channel(), E'hint\\njobs @{worker}')");
        let mut notified = fixture.events.reader_from_now();
        watcher.batch_execute(&hint).await.unwrap();
        notified.until(|event| *event == JobEvent::Notified).await;
    }
    // What the hints made ready to run has run when this answer is here.
    watcher.batch_execute("select").await.unwrap();
    barrier.batch_execute("commit").await.unwrap();
    soon(async { while lease_end(&watcher, patient).await == before {} }).await;

    let together =
        "select count(*) from (select from updated where id = any ($1) group by tx having count(*) = 2) as pairs";
    let together: i64 = watcher.query_one(together, &[&vec![patient.0, hasty.0]]).await.unwrap().get(0);
    assert_eq!(together, 1, "the renewals of both left in one statement");
    let left = lease_left(&watcher, patient).await;
    assert!(left > 20.0, "the lease of 30 s ends in {left} s");
    assert_eq!(fixture.explain(patient).await.attempt, 1);
    let started = |event: &JobEvent| matches!(event, JobEvent::Started { job } if job.id == patient);
    assert_eq!(fixture.events.count(started), 1);
}

/// A job whose worker was lost: its lease ended a while ago, and it was not claimed since.
async fn lost(fixture: &Fixture, ago: &str) -> JobId {
    let id = fixture.enqueue(job("ok").queue("mail")).await;
    let held = format!(
        "update reveille.job set nonce = 7, worker = 'w-1', epoch = 1, attempt = 1,
         due_at = clock_timestamp() - interval '{ago}' where id = {id}"
    );
    fixture.sql(&held).await;
    id
}

#[tokio::test]
async fn a_job_whose_lease_has_ended_is_ready_since_then_in_every_view() {
    let fixture = Fixture::new().await;
    let doomed = fixture.another().await;
    let worker = Worker::builder(&doomed.jobs).queue("mail", 1);
    let worker = worker.handler::<Value, _>("ok", |_, _| std::future::pending::<()>()).start().await.unwrap();
    let id = fixture.enqueue(job("ok").queue("mail")).await;
    doomed.started(id, 1).await;
    let held = soon(fixture.jobs.queues()).await.unwrap();
    assert_eq!((held[0].ready, held[0].running, held[0].age), (0, 1, None));

    drop(worker);
    doomed.database.close().await;
    fixture.sql("update reveille.job set due_at = clock_timestamp() - interval '90 s'").await;

    let queues = soon(fixture.jobs.queues()).await.unwrap();
    assert_eq!((queues[0].ready, queues[0].scheduled, queues[0].running), (1, 0, 0));
    let age = queues[0].age.expect("a job is ready");
    assert!((Duration::from_secs(90)..Duration::from_secs(300)).contains(&age), "{age:?}");
    let job = fixture.explain(id).await;
    assert_eq!(job.state, State::Ready);
    assert!(job.because.contains("its lease ended 9") && job.because.contains("any worker may take it"), "{job:?}");
}

#[tokio::test]
async fn a_job_whose_lease_has_ended_can_be_cancelled_moved_and_deleted_like_any_that_waits() {
    let fixture = Fixture::new().await;
    let (cancelled, moved, deleted) =
        (lost(&fixture, "1 s").await, lost(&fixture, "1 s").await, lost(&fixture, "1 s").await);

    assert_eq!(soon(fixture.jobs.cancel(cancelled)).await.unwrap(), Cancelled::Now);
    soon(fixture.jobs.reprioritise(moved, 0)).await.unwrap();
    soon(fixture.jobs.delete(deleted)).await.unwrap();

    assert_eq!(fixture.explain(cancelled).await.state, State::Cancelled);
    let moved = fixture.explain(moved).await;
    assert_eq!((moved.state, moved.priority), (State::Ready, 0));
    assert_eq!(fixture.count("reveille.job").await, 1);
}

/// A worker that comes back too late finds its lease lost, as after another claim.
#[tokio::test]
async fn a_worker_whose_job_was_cancelled_after_its_lease_records_nothing() {
    let fixture = Fixture::new().await;
    let id = lost(&fixture, "1 s").await;
    soon(fixture.jobs.cancel(id)).await.unwrap();

    let late = fixture.client().await.execute("select reveille.complete($1)", &[&format!("{id}.1.7")]).await;

    assert!(late.is_err(), "{late:?}");
    assert_eq!(fixture.explain(id).await.state, State::Cancelled);
}

#[tokio::test]
async fn one_attempt_is_written_in_the_singular() {
    let fixture = Fixture::new().await;
    let _worker = fixture.worker().start().await.unwrap();
    let id = fixture.enqueue(job("no").max_attempts(1)).await;
    fixture.failed(id, 1).await;

    let because = fixture.explain(id).await.because;

    assert!(because.starts_with("it failed for good after 1 attempt: "), "{because}");
}
