//! How attempts end, and what is left of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;

use reveille::jobs::{Backoff, Job, JobEvent, JobsOptions, NewJob, Outcome, Redrive, Settled, State};
use serde_json::Value;
use tokio::sync::Notify;

use crate::support::{Fixture, NEVER, job, soon};

fn at_once() -> Backoff {
    Backoff::list([Duration::ZERO]).unwrap()
}

#[tokio::test]
async fn a_job_that_fails_is_tried_until_its_last_attempt_and_is_dead_then_with_its_history() {
    let fixture = Fixture::new().await;
    let _worker = fixture.worker().start().await.unwrap();

    let id = fixture.enqueue(job("no").max_attempts(3).backoff(at_once())).await;
    let last = fixture.failed(id, 3).await;

    assert!(matches!(last, JobEvent::Failed { state: State::Dead, .. }), "{last:?}");
    let dead = fixture.explain(id).await;
    assert_eq!((dead.state, dead.attempt), (State::Dead, 3));
    let errors: Vec<_> = dead.errors.iter().map(|error| (error.attempt, &*error.code, &*error.message)).collect();
    assert_eq!(errors, [(1, "failed", "it cannot"), (2, "failed", "it cannot"), (3, "failed", "it cannot")]);
    let listed = soon(fixture.jobs.dead(Some("default"), None, 10)).await.unwrap();
    assert_eq!(listed.iter().map(|dead| (dead.id, &*dead.reason)).collect::<Vec<_>>(), [(id, "it cannot")]);
}

/// The first failure is followed at once, the second after half a minute.
#[tokio::test]
async fn the_default_pauses_are_none_then_30_s_then_5_min() {
    let fixture = Fixture::new().await;
    let _worker = fixture.worker().start().await.unwrap();

    let id = fixture.enqueue(job("no")).await;
    fixture.failed(id, 2).await;

    let waits = fixture.explain(id).await;
    assert_eq!((waits.state, waits.attempt, waits.max_attempts), (State::Scheduled, 2, 4));
    let due = "reveille.job where due_at between now() + interval '20 s' and now() + interval '30 s'";
    assert_eq!(fixture.count(due).await, 1);
    assert!(waits.because.starts_with("attempt 2 failed; the next is due in"), "{}", waits.because);
}

#[tokio::test]
async fn the_history_of_a_job_that_never_stops_failing_is_bounded() {
    let fixture = Fixture::new().await;
    let _worker = fixture.worker().start().await.unwrap();

    let id = fixture.enqueue(job("no").max_attempts(40).backoff(at_once())).await;
    fixture.failed(id, 40).await;

    assert_eq!(fixture.explain(id).await.errors.len(), 20);
}

/// A redrive counts attempts from the start, and the history goes on.
#[tokio::test]
async fn the_history_of_a_job_that_is_redriven_without_end_is_bounded() {
    let fixture = Fixture::new().await;
    let _worker = fixture.worker().start().await.unwrap();
    let id = fixture.enqueue(job("no").max_attempts(2).backoff(at_once())).await;
    let mut events = fixture.events.reader();

    for _ in 0..15 {
        events.until(|event| matches!(event, JobEvent::Failed { state: State::Dead, .. })).await;
        assert_eq!(soon(fixture.jobs.redrive(Redrive::one(id))).await.unwrap(), [id]);
    }
    events.until(|event| matches!(event, JobEvent::Failed { state: State::Dead, .. })).await;

    assert_eq!(fixture.count("reveille.job_error").await, 20);
    let errors = fixture.explain(id).await.errors;
    assert!(errors.is_sorted_by(|one, next| one.ago >= next.ago), "the earliest first: {errors:?}");
}

#[tokio::test]
async fn no_more_of_a_history_is_read_than_is_kept() {
    let fixture = Fixture::new().await;
    let id = fixture.enqueue(job("k").delay(NEVER)).await;
    let history = "insert into reveille.job_error (job, attempt, code, message)
                   select job.id, n, 'failed', 'it cannot' from reveille.job cross join generate_series(1, 25) as n";

    fixture.sql(history).await;

    let attempts: Vec<i16> = fixture.explain(id).await.errors.iter().map(|error| error.attempt).collect();
    assert_eq!(attempts, (6..=25).collect::<Vec<i16>>());
}

#[tokio::test]
async fn every_outcome_leaves_its_state() {
    let fixture = Fixture::new().await;
    let worker = fixture.worker().handler::<String, _>("end", |how, job: Job| async move {
        match &*how {
            "done_with" => Outcome::done_with(&serde_json::json!({"n": 7})).expect("is JSON"),
            "retry_in" => Outcome::RetryIn(reveille::jobs::Failure::new("busy", "later"), NEVER),
            "snooze" => Outcome::Snooze(NEVER),
            "cancel" => Outcome::Cancel("not wanted".to_owned()),
            "dead" => Outcome::dead("hopeless", "never"),
            "panic" => panic!("it broke in attempt {}", job.attempt()),
            other => panic!("{other}"),
        }
    });
    let _worker = worker.start().await.unwrap();
    let mut ids = Vec::new();
    for how in ["done_with", "retry_in", "snooze", "cancel", "dead", "panic"] {
        let end = NewJob::new("end", &how).unwrap().max_attempts(if how == "panic" { 1 } else { 4 });
        ids.push(fixture.enqueue(end).await);
    }
    for id in &ids {
        fixture
            .events
            .until(|event| {
                matches!(event, JobEvent::Completed { job, .. } | JobEvent::Failed { job, .. } | JobEvent::Settled { job, .. }
                    if job.id == *id)
            })
            .await;
    }

    let mut seen = Vec::new();
    for id in ids {
        let job = fixture.explain(id).await;
        seen.push((job.state, job.attempt, job.errors.last().map(|error| error.code.clone())));
        if job.state == State::Done {
            assert_eq!(job.result.as_deref(), Some(&b"{\"n\":7}"[..]));
        }
        if job.state == State::Cancelled {
            assert_eq!(job.because, "not wanted");
        }
    }
    let code = |code: &str| Some(code.to_owned());
    assert_eq!(
        seen,
        [
            (State::Done, 1, None),
            (State::Scheduled, 1, code("busy")),
            (State::Scheduled, 0, None),
            (State::Cancelled, 1, None),
            (State::Dead, 1, code("hopeless")),
            (State::Dead, 1, code("panic")),
        ]
    );
}

#[tokio::test]
async fn an_attempt_that_takes_too_long_has_failed() {
    let fixture = Fixture::new().await;
    let worker = fixture.worker().handler::<Value, _>("long", |_, _| std::future::pending::<()>());
    let _worker = worker.start().await.unwrap();

    let id = fixture.enqueue(job("long").max_attempts(1).timeout(Duration::from_millis(50))).await;
    let failed = fixture.failed(id, 1).await;

    assert!(matches!(failed, JobEvent::Failed { code, state: State::Dead, .. } if code == "timeout"));
}

#[tokio::test]
async fn a_job_settled_in_the_handlers_transaction_is_done_with_it_and_not_without_it() {
    let fixture = Fixture::new().await;
    fixture.sql("create table letter (n int)").await;
    let url = fixture.db.url();
    let worker = fixture.worker().handler::<bool, _>("letter", move |commits, job: Job| {
        let url = url.clone();
        async move {
            let mut client = reveille_testkit::connect(&url).await;
            let transaction = client.transaction().await.expect("begins");
            transaction.execute("insert into letter values (1)", &[]).await.expect("is written");
            assert_eq!(job.settle_in(&transaction, Outcome::Done).await.expect("is settled"), Settled::Recorded);
            if commits {
                transaction.commit().await.expect("commits");
            }
        }
    });
    let _worker = worker.start().await.unwrap();

    let lost = fixture.enqueue(NewJob::new("letter", &false).unwrap().max_attempts(1)).await;
    let failed = fixture.failed(lost, 1).await;
    let kept = fixture.enqueue(NewJob::new("letter", &true).unwrap()).await;
    let done = async {
        while fixture.explain(kept).await.state != State::Done {
            tokio::task::yield_now().await;
        }
    };
    Box::pin(soon(done)).await;

    assert!(matches!(failed, JobEvent::Failed { code, .. } if code == "not_committed"));
    assert_eq!(fixture.count("letter").await, 1);
    assert_eq!(fixture.events.count(|event| matches!(event, JobEvent::LeaseLost { .. })), 0);
}

/// Two attempts at one job: the first lost its lease while it was at work, and the second has it.
#[tokio::test]
async fn a_worker_that_lost_the_lease_settles_nothing_through_any_interface() {
    let fixture = Fixture::new().await;
    let (go, arrived) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let answers = Arc::new(std::sync::Mutex::new(Vec::new()));
    let (url, attempts) = (fixture.db.url(), Arc::new(AtomicI32::new(0)));
    let worker = {
        let (go, arrived, answers) = (Arc::clone(&go), Arc::clone(&arrived), Arc::clone(&answers));
        fixture.worker().slots(2).handler::<Value, _>("slow", move |_, job: Job| {
            let (go, arrived, answers) = (Arc::clone(&go), Arc::clone(&arrived), Arc::clone(&answers));
            let url = url.clone();
            let first = attempts.fetch_add(1, Ordering::SeqCst) == 0;
            async move {
                arrived.notify_one();
                if !first {
                    std::future::pending::<()>().await;
                }
                go.notified().await;
                let client = reveille_testkit::connect(&url).await;
                let settled = job.settle_in(&client, Outcome::Done).await.expect("is answered");
                let progress = job.progress(&1).await.expect("is answered");
                answers.lock().expect("is whole").extend([settled, progress]);
                for call in ["complete($1)", "fail($1, 'c', 'm')", "snooze($1, '1 s')"] {
                    let token = job.token().to_string();
                    let error = client.query(&format!("select reveille.{call}"), &[&token]).await.expect_err("is lost");
                    assert_eq!(
                        error.code().map(tokio_postgres::error::SqlState::code),
                        Some("55000"),
                        "{call}: {error:?}"
                    );
                }
            }
        })
    };
    let _worker = worker.start().await.unwrap();
    let id = fixture.enqueue(job("slow")).await;
    soon(arrived.notified()).await;
    // The lease ends, as far as the database knows, and the job is claimed again.
    fixture.sql("update reveille.job set due_at = now() - interval '1 s'").await;
    fixture.sql("select pg_notify(reveille.hint_channel(), E'hint\\njobs default')").await;
    soon(arrived.notified()).await;

    go.notify_one();
    fixture.events.until(|event| matches!(event, JobEvent::LeaseLost { job } if job.attempt == 1)).await;

    assert_eq!(*answers.lock().unwrap(), [Settled::LeaseLost, Settled::LeaseLost]);
    let running = fixture.explain(id).await;
    assert_eq!((running.state, running.attempt), (State::Running, 2));
    assert_eq!(fixture.count("reveille.job_done").await, 0);
}

#[tokio::test]
async fn progress_is_kept_while_a_job_runs() {
    let fixture = Fixture::new().await;
    let noted = Arc::new(Notify::new());
    let signal = Arc::clone(&noted);
    let worker = fixture.worker().handler::<Value, _>("long", move |_, job: Job| {
        let signal = Arc::clone(&signal);
        async move {
            job.progress(&serde_json::json!({"done": 3})).await.expect("is noted");
            signal.notify_one();
            std::future::pending::<()>().await;
        }
    });
    let _worker = worker.start().await.unwrap();

    let id = fixture.enqueue(job("long")).await;
    soon(noted.notified()).await;

    assert_eq!(fixture.explain(id).await.progress.as_deref(), Some(&b"{\"done\":3}"[..]));
}

#[tokio::test]
async fn with_nothing_to_keep_a_job_that_is_done_leaves_nothing() {
    let fixture = Fixture::with(JobsOptions::default().keep_done(Duration::ZERO)).await;
    let _worker = fixture.worker().start().await.unwrap();

    let id = fixture.enqueue(job("ok")).await;
    fixture.completed(id).await;

    for table in ["job", "job_body", "job_done", "job_error"] {
        assert_eq!(fixture.count(&format!("reveille.{table}")).await, 0, "{table}");
    }
}

/// Its first attempt after the redrive is not its first.
#[tokio::test]
async fn with_nothing_to_keep_a_job_that_was_redriven_leaves_nothing() {
    let fixture = Fixture::with(JobsOptions::default().keep_done(Duration::ZERO)).await;
    let claims = Arc::new(AtomicI32::new(0));
    let worker = fixture.worker().handler::<Value, _>("late", move |_, _| {
        let first = claims.fetch_add(1, Ordering::SeqCst) == 0;
        async move { if first { Err("not yet") } else { Ok(()) } }
    });
    let _worker = worker.start().await.unwrap();
    let id = fixture.enqueue(job("late").max_attempts(1)).await;
    fixture.failed(id, 1).await;

    soon(fixture.jobs.redrive(Redrive::one(id))).await.unwrap();
    fixture.completed(id).await;

    assert_eq!(fixture.count("reveille.job_error").await, 0);
}

#[tokio::test]
async fn ended_jobs_are_forgotten_when_their_time_is_over_and_dead_ones_are_kept() {
    let fixture = Fixture::new().await;
    let _worker = fixture.worker().start().await.unwrap();
    let (done, dead) = (fixture.enqueue(job("ok")).await, fixture.enqueue(job("no").max_attempts(1)).await);
    fixture.completed(done).await;
    fixture.failed(dead, 1).await;
    assert_eq!(soon(fixture.jobs.upkeep()).await.unwrap(), 0);

    fixture.sql("update reveille.job_done set keep_until = now() where keep_until is not null").await;

    assert_eq!(soon(fixture.jobs.upkeep()).await.unwrap(), 1);
    assert!(fixture.jobs.explain(done).await.unwrap().is_none());
    assert_eq!(fixture.explain(dead).await.state, State::Dead);
}
