//! Claims: what is found when, and what a long transaction elsewhere does to it.

use std::sync::Arc;
use std::time::Duration;

use reveille::jobs::{JobEvent, JobId, JobsOptions, State};

use crate::support::{Fixture, all_new, job, soon};

#[tokio::test]
async fn a_delayed_job_wakes_a_worker_when_its_time_comes_and_not_before() {
    let fixture = Fixture::new().await;
    let _worker = fixture.worker().start().await.unwrap();

    let id = fixture.enqueue(job("ok").delay(Duration::from_millis(300))).await;
    fixture.completed(id).await;

    let late = "reveille.job_done join reveille.job_body using (id) where finished_at >= run_at";
    assert_eq!(fixture.count(late).await, 1);
}

/// The producer is another process, and the delay travels with its hint.
#[tokio::test]
async fn a_delay_announced_by_another_process_is_kept_without_a_heartbeat() {
    let fixture = Fixture::new().await;
    let _worker = fixture.worker().start().await.unwrap();
    let other = fixture.another().await;

    let id = other.enqueue(job("ok").delay(Duration::from_millis(200))).await;
    let sql: i64 = fixture
        .client()
        .await
        .query_one("select reveille.enqueue('ok', '{}', delay => '0.2 s')", &[])
        .await
        .unwrap()
        .get(0);

    fixture.completed(id).await;
    fixture.completed(JobId(sql)).await;
}

/// Its place in the queue is before jobs that were enqueued later, committed earlier, and taken
/// long ago.
#[tokio::test]
async fn a_job_whose_transaction_commits_late_is_found_though_later_ones_are_done() {
    let fixture = Fixture::new().await;
    let _worker = fixture.worker().start().await.unwrap();
    let mut client = fixture.client().await;
    let transaction = client.transaction().await.unwrap();
    let late = fixture.jobs.enqueue_in(&transaction, vec![job("ok")]).await.unwrap()[0].id;
    let mut last = late;
    for _ in 0..50 {
        last = fixture.enqueue(job("ok")).await;
        fixture.completed(last).await;
    }
    assert!(last > late);

    transaction.commit().await.unwrap();

    fixture.completed(late).await;
}

/// A locked row is skipped, and claimed when it is free, though the transaction that locked it
/// announces nothing when it ends.
#[tokio::test]
async fn a_job_that_another_transaction_has_locked_is_not_forgotten() {
    let fixture = Fixture::new().await;
    let id = fixture.enqueue(job("ok")).await;
    let mut client = fixture.client().await;
    let transaction = client.transaction().await.unwrap();
    transaction.execute("select from reveille.job for update", &[]).await.unwrap();
    let _worker = fixture.worker().start().await.unwrap();
    let other = fixture.enqueue(job("ok")).await;
    fixture.completed(other).await;

    transaction.rollback().await.unwrap();

    fixture.completed(id).await;
}

#[tokio::test]
async fn a_paused_queue_gives_nothing_until_it_is_resumed() {
    let fixture = Fixture::new().await;
    let _worker = fixture.worker().queue("default", 1).queue("mail", 1).start().await.unwrap();
    soon(fixture.jobs.pause("mail")).await.unwrap();
    let held = fixture.enqueue(job("ok").queue("mail")).await;
    let free = fixture.enqueue(job("ok")).await;
    fixture.completed(free).await;
    let waits = fixture.explain(held).await;
    assert_eq!((waits.state, &*waits.because), (State::Ready, "its queue is paused"));

    soon(fixture.another().await.jobs.resume("mail")).await.unwrap();

    fixture.completed(held).await;
}

#[tokio::test]
async fn a_quiet_queue_is_polled_without_a_notification() {
    let fixture = Fixture::with(JobsOptions::default().fallback_interval(Duration::from_millis(200))).await;
    let _worker = fixture.worker().start().await.unwrap();
    soon(fixture.jobs.quiet("default", true)).await.unwrap();
    let first = fixture.enqueue(job("ok")).await;
    fixture.completed(first).await;
    let notified = fixture.events.count(|event| *event == JobEvent::Notified);

    let id: i64 = fixture.client().await.query_one("select reveille.enqueue('ok', '{}')", &[]).await.unwrap().get(0);
    fixture.completed(JobId(id)).await;

    assert_eq!(fixture.events.count(|event| *event == JobEvent::Notified), notified);
}

/// A snapshot held elsewhere keeps dead entries at the front of the queue; every job is still
/// found, late commits included.
#[tokio::test]
async fn under_a_held_snapshot_nothing_is_lost() {
    let fixture = Fixture::new().await;
    let _worker = fixture.worker().start().await.unwrap();
    let holder = fixture.client().await;
    holder.batch_execute("begin isolation level repeatable read; select count(*) from reveille.job").await.unwrap();
    let mut client = fixture.client().await;
    let transaction = client.transaction().await.unwrap();
    let late = fixture.jobs.enqueue_in(&transaction, vec![job("ok")]).await.unwrap()[0].id;

    for _ in 0..10 {
        let ids = all_new(fixture.jobs.enqueue_many((0..500).map(|_| job("ok")).collect()).await);
        fixture.completed(ids[499]).await;
    }
    transaction.commit().await.unwrap();
    fixture.completed(late).await;
    let mut completed = fixture.events.reader();
    for _ in 0..5001 {
        completed.until(|event| matches!(event, JobEvent::Completed { .. })).await;
    }

    assert_eq!(fixture.count("reveille.job").await, 0);
    holder.batch_execute("rollback").await.unwrap();
}

#[tokio::test]
async fn an_odd_queue_name_is_a_queue() {
    let fixture = Fixture::new().await;
    let odd = "a queue\nof \"odd\" 'names' @ ü";
    let _worker = fixture.worker().queue(odd, 1).queue("@x", 1).start().await.unwrap();
    let elsewhere = fixture.another().await;

    let (first, second) = (fixture.enqueue(job("ok").queue(odd)).await, elsewhere.enqueue(job("ok").queue(odd)).await);
    let third = elsewhere.enqueue(job("ok").queue("@x")).await;
    let client = fixture.client().await;
    let fourth: i64 =
        client.query_one("select reveille.enqueue('ok', '{}', queue => $1)", &[&odd]).await.unwrap().get(0);

    for id in [first, second, third, JobId(fourth)] {
        fixture.completed(id).await;
    }
}

/// A flood of forged hints does not become a flood of claims.
#[tokio::test]
async fn forged_hints_cost_a_bounded_number_of_claim_rounds() {
    let fixture = Fixture::new().await;
    let events = reveille_testkit::Events::new();
    let recorded = events.clone();
    let observer = Arc::new(move |event: &reveille_wake::Event| recorded.record(*event));
    let node = crate::support::Node::at(
        reveille::database::DatabaseOptions::new(fixture.db.url()).heartbeat(crate::support::NEVER),
        JobsOptions::default().wake_observer(observer),
    )
    .await;
    let _worker = node.worker().start().await.unwrap();
    events.until(|event| matches!(event, reveille_wake::Event::Link(link) if link.is_proven())).await;
    let client = fixture.client().await;

    // All at once, and each different: PostgreSQL delivers all of them.
    let flood = "select pg_notify(reveille.hint_channel(), E'hint\\njobs default\\njobs ' || n) from generate_series(1, 300) as n";
    client.execute(flood, &[]).await.unwrap();
    let id = node.enqueue(job("ok")).await;
    node.completed(id).await;

    let rounds = events.count(|event| matches!(event, reveille_wake::Event::RoundEnded { .. }));
    assert!(rounds < 100, "{rounds} claim rounds for 300 forged hints");
}

/// Their workers were lost: the next claim finds that they may not be tried again, and tables,
/// figures and events show it.
#[tokio::test]
async fn a_job_that_ends_as_it_is_claimed_is_counted_and_kept_like_others_that_end_so() {
    let keep = JobsOptions::default().keep_done(Duration::from_secs(3600)).keep_dead(Duration::from_secs(7200));
    let fixture = Fixture::with(keep).await;
    let of_item = job("ok").max_attempts(1).metadata(&serde_json::json!({"item_id": "i-7"})).unwrap();
    let (dead, cancelled) = (fixture.enqueue(of_item).await, fixture.enqueue(job("ok")).await);
    let lost = "set nonce = 77, worker = 'lost', epoch = 1, attempt = 1, due_at = now() - interval '1 s'";
    fixture.sql(&format!("update reveille.job {lost}, cancel_requested = (id = {cancelled})")).await;

    let _worker = fixture.worker().start().await.unwrap();
    for (id, end, item) in [(dead, State::Dead, Some("i-7")), (cancelled, State::Cancelled, None)] {
        let ended = fixture.events.until(|event| matches!(event, JobEvent::Ended { job, .. } if job.id == id)).await;
        let JobEvent::Ended { job, state } = ended else { panic!("{ended:?}") };
        assert_eq!((state, &*job.kind, job.attempt, job.item_id.as_deref()), (end, "ok", 1, item));
    }

    let figures = fixture.jobs.figures();
    let of_kind = &figures.kinds["ok"];
    assert_eq!((of_kind.success, of_kind.failed, of_kind.dead, of_kind.claimed.len()), (0, 0, 1, 0));
    let text = figures.prometheus(&soon(fixture.jobs.depths()).await.unwrap());
    for line in
        ["job_completed_total{job_type=\"ok\",status=\"dead\"} 1", "job_processing_seconds_count{job_type=\"ok\"} 0"]
    {
        assert!(text.lines().any(|there| there == line), "{line} is not in\n{text}");
    }
    let kept = "keep_until - finished_at between interval";
    let long =
        format!("reveille.job_done where state = 'dead' and code = 'lease_expired' and {kept} '119 min' and '121 min'");
    let short = format!("reveille.job_done where state = 'cancelled' and {kept} '59 min' and '61 min'");
    assert_eq!((fixture.count(&long).await, fixture.count(&short).await), (1, 1));
}
