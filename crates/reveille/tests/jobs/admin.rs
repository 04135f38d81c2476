//! What people do to jobs.

use std::time::Duration;

use reveille::jobs::{Cancelled, JobId, JobsError, Redrive, State};

use crate::support::{Fixture, NEVER, all_new, job, soon};

#[tokio::test]
async fn a_waiting_job_is_cancelled_at_once_and_kept_as_such() {
    let fixture = Fixture::new().await;
    let id = fixture.enqueue(job("ok").delay(NEVER)).await;

    assert_eq!(soon(fixture.jobs.cancel(id)).await.unwrap(), Cancelled::Now);

    assert_eq!(fixture.explain(id).await.state, State::Cancelled);
    let again = soon(fixture.jobs.cancel(id)).await.unwrap_err();
    assert!(matches!(again, JobsError::WrongState { state: State::Cancelled, .. }), "{again:?}");
}

#[tokio::test]
async fn a_scheduled_job_can_be_run_now() {
    let fixture = Fixture::new().await;
    let _worker = fixture.worker().start().await.unwrap();
    let id = fixture.enqueue(job("ok").delay(NEVER)).await;

    soon(fixture.another().await.jobs.retry_now(id)).await.unwrap();

    fixture.completed(id).await;
}

#[tokio::test]
async fn dead_jobs_come_back_one_some_or_all() {
    let fixture = Fixture::new().await;
    let worker = fixture.worker().queue("default", 1).queue("mail", 1).start().await.unwrap();
    let mut dead = Vec::new();
    for queue in ["default", "default", "mail", "mail", "mail"] {
        dead.push(fixture.enqueue(job("no").queue(queue).max_attempts(1)).await);
    }
    for id in &dead {
        fixture.failed(*id, 1).await;
    }
    soon(worker.drain(Duration::from_secs(5))).await;

    assert_eq!(soon(fixture.jobs.redrive(Redrive::one(dead[0]))).await.unwrap(), dead[..1]);
    assert_eq!(
        soon(fixture.jobs.redrive(Redrive::all().queue("mail").kind("no").code("failed"))).await.unwrap(),
        dead[2..]
    );
    assert_eq!(soon(fixture.jobs.redrive(Redrive::all().kind("other"))).await.unwrap(), []);
    assert_eq!(soon(fixture.jobs.redrive(Redrive::all())).await.unwrap(), dead[1..2]);

    let back = fixture.explain(dead[0]).await;
    assert_eq!((back.state, back.attempt, back.errors.len()), (State::Ready, 0, 1));
    // Its epoch has not been reset.
    assert_eq!(fixture.count("reveille.job where epoch = 1").await, 5);
}

/// More jobs than one statement redrives.
#[tokio::test]
async fn a_redrive_of_everything_brings_back_everything_and_wakes() {
    let fixture = Fixture::new().await;
    all_new(fixture.jobs.enqueue_many((0..2500).map(|_| job("ok")).collect()).await);
    fixture
        .sql(
            "with gone as (delete from reveille.job returning id, epoch, attempt, queue)
              insert into reveille.job_done (id, state, finished_at, epoch, attempt, queue)
              select id, 'dead', now(), epoch, attempt, queue from gone",
        )
        .await;
    let _worker = fixture.worker().start().await.unwrap();

    let back = soon(fixture.jobs.redrive(Redrive::all())).await.unwrap();

    assert_eq!(back.len(), 2500);
    fixture.completed(back[2499]).await;
}

#[tokio::test]
async fn a_job_gets_another_priority_and_comes_first() {
    let fixture = Fixture::new().await;
    let ids = all_new(fixture.jobs.enqueue_many((0..3).map(|_| job("ok")).collect()).await);

    soon(fixture.jobs.reprioritise(ids[2], 0)).await.unwrap();
    let _worker = fixture.worker().slots(1).start().await.unwrap();
    for id in &ids {
        fixture.completed(*id).await;
    }

    assert_eq!(fixture.completions()[0], ids[2]);
    let refused = soon(fixture.jobs.reprioritise(ids[0], 10)).await.unwrap_err();
    assert_eq!(refused.to_string(), "the priority must be 0 to 9, not 10");
}

#[tokio::test]
async fn a_deleted_job_leaves_nothing() {
    let fixture = Fixture::new().await;
    let id = fixture.enqueue(job("ok").delay(NEVER)).await;

    soon(fixture.jobs.delete(id)).await.unwrap();

    assert!(fixture.jobs.explain(id).await.unwrap().is_none());
    let again = soon(fixture.jobs.delete(id)).await.unwrap_err();
    assert!(matches!(again, JobsError::NoJob(gone) if gone == id), "{again:?}");
    assert!(matches!(soon(fixture.jobs.cancel(JobId(999))).await, Err(JobsError::NoJob(_))));
}

#[tokio::test]
async fn queues_show_what_they_hold_and_how_old_it_is() {
    let fixture = Fixture::new().await;
    fixture.enqueue(job("ok").queue("a")).await;
    fixture.enqueue(job("ok").queue("a").delay(NEVER)).await;
    fixture.enqueue(job("other").queue("b")).await;
    soon(fixture.jobs.pause("c")).await.unwrap();

    let queues = soon(fixture.jobs.queues()).await.unwrap();

    let seen: Vec<_> =
        queues.iter().map(|q| (&*q.name, q.scheduled, q.ready, q.running, q.age.is_some(), q.paused)).collect();
    assert_eq!(seen, [("a", 1, 1, 0, true, false), ("b", 0, 1, 0, true, false), ("c", 0, 0, 0, false, true)]);
    let depths = soon(fixture.jobs.depths()).await.unwrap();
    assert_eq!(depths.into_iter().collect::<Vec<_>>(), [("ok".to_owned(), 2), ("other".to_owned(), 1)]);
}
