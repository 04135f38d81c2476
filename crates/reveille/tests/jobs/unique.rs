//! Unique jobs, in every scope and with every answer to a conflict.

use std::time::Duration;

use reveille::jobs::{Conflict, JobId, JobsError, NewJob, Redrive, State, Unique};

use crate::support::{Fixture, NEVER, job, soon, until_blocked};

async fn add(fixture: &Fixture, job: NewJob) -> (JobId, bool) {
    let added = soon(fixture.jobs.enqueue(job)).await.unwrap();
    (added.id, added.existing)
}

fn args(kind: &str, n: i32) -> NewJob {
    NewJob::new(kind, &n).unwrap()
}

#[tokio::test]
async fn a_scope_compares_what_it_names_and_nothing_else() {
    let fixture = Fixture::new().await;
    for (scope, same, different) in [
        ("kind", args("a", 2).queue("q2"), args("b", 1)),
        ("queue", args("b", 2), args("a", 1).queue("q2")),
        ("args", args("b", 1).queue("q2"), args("a", 2)),
        ("kind,queue", args("a", 2), args("a", 1).queue("q2")),
        ("kind, args", args("a", 1).queue("q2"), args("a", 2)),
        ("kind,queue,args", args("a", 1), args("a", 1).queue("q2")),
    ] {
        let unique = Unique::scoped(scope).key(scope);
        let first = add(&fixture, args("a", 1).unique(unique.clone())).await;

        let second = add(&fixture, same.unique(unique.clone())).await;
        let other = add(&fixture, different.unique(unique)).await;

        assert_eq!((first.1, second), (false, (first.0, true)), "{scope}");
        assert!(!other.1, "{scope}");
    }
}

#[tokio::test]
async fn a_key_is_free_again_when_its_job_has_ended_unless_its_window_lasts() {
    let fixture = Fixture::new().await;
    let _worker = fixture.worker().start().await.unwrap();
    let (plain, windowed) = (Unique::by_key("p"), Unique::by_key("w").window(NEVER));
    let (first, _) = add(&fixture, job("ok").unique(plain.clone())).await;
    let (second, _) = add(&fixture, job("ok").unique(windowed.clone())).await;
    fixture.completed(first).await;
    fixture.completed(second).await;

    assert!(!add(&fixture, job("ok").unique(plain)).await.1);
    assert_eq!(add(&fixture, job("ok").unique(windowed)).await, (second, true));
}

#[tokio::test]
async fn each_answer_to_a_conflict_does_what_it_says_to_a_job_that_waits() {
    let fixture = Fixture::new().await;
    let unique = |conflict| Unique::by_key("k").on_conflict(conflict);
    let (first, _) = add(&fixture, args("a", 1).delay(NEVER).unique(unique(Conflict::Keep))).await;

    assert_eq!(add(&fixture, args("a", 2).unique(unique(Conflict::Keep))).await, (first, true));
    let kept = fixture.explain(first).await;
    assert_eq!((&*kept.args, kept.state), (&b"1"[..], State::Scheduled));

    assert_eq!(add(&fixture, args("a", 3).unique(unique(Conflict::ReplaceArgs))).await, (first, true));
    let replaced = fixture.explain(first).await;
    assert_eq!((&*replaced.args, replaced.state), (&b"3"[..], State::Scheduled));

    let refused = soon(fixture.jobs.enqueue(args("a", 4).unique(unique(Conflict::Error)))).await.unwrap_err();
    assert!(matches!(&refused, JobsError::Duplicate(why) if why.contains(&first.to_string())), "{refused:?}");

    assert_eq!(add(&fixture, args("a", 5).unique(unique(Conflict::Reschedule))).await, (first, true));
    let rescheduled = fixture.explain(first).await;
    assert_eq!((&*rescheduled.args, rescheduled.state), (&b"3"[..], State::Ready));
}

#[tokio::test]
async fn a_job_that_runs_is_neither_replaced_nor_rescheduled() {
    let fixture = Fixture::new().await;
    let worker = fixture.worker().handler::<i32, _>("long", |_, _| std::future::pending::<()>());
    let _worker = worker.start().await.unwrap();
    let unique = |conflict| Unique::by_key("k").on_conflict(conflict);
    let (first, _) = add(&fixture, args("long", 1).unique(unique(Conflict::Keep))).await;
    fixture.started(first, 1).await;

    for conflict in [Conflict::ReplaceArgs, Conflict::Reschedule] {
        assert_eq!(add(&fixture, args("long", 2).delay(NEVER).unique(unique(conflict))).await, (first, true));
    }

    let running = fixture.explain(first).await;
    assert_eq!((&*running.args, running.state), (&b"1"[..], State::Running));
}

/// The second enqueue must wait for the first one's transaction: only then is it known whether the
/// key is taken.
#[tokio::test]
async fn of_two_transactions_with_one_key_the_second_waits_and_finds_the_first() {
    let fixture = Fixture::new().await;
    let (mut one, other) = (fixture.client().await, fixture.client().await);
    let unique = || job("ok").delay(NEVER).unique(Unique::by_key("k"));
    let transaction = one.transaction().await.unwrap();
    let first = fixture.jobs.enqueue_in(&transaction, vec![unique()]).await.unwrap()[0];

    let waiting = fixture.jobs.enqueue_in(&other, vec![unique()]);
    tokio::pin!(waiting);
    let watcher = fixture.client().await;
    tokio::select! {
        _ = &mut waiting => panic!("it did not wait"),
        () = until_blocked(&watcher, "enqueue_items") => {}
    }
    transaction.commit().await.unwrap();
    let second = soon(waiting).await.unwrap()[0];

    assert_eq!((second.id, second.existing), (first.id, true));
    assert_eq!(fixture.count("reveille.job").await, 1);
}

#[tokio::test]
async fn upkeep_forgets_keys_of_ended_jobs_and_no_others() {
    let fixture = Fixture::new().await;
    let _worker = fixture.worker().start().await.unwrap();
    let (ended, _) = add(&fixture, job("ok").unique(Unique::by_key("ended"))).await;
    let (windowed, _) = add(&fixture, job("ok").unique(Unique::by_key("windowed").window(NEVER))).await;
    add(&fixture, job("ok").delay(NEVER).unique(Unique::by_key("waits"))).await;
    fixture.completed(ended).await;
    fixture.completed(windowed).await;

    soon(fixture.jobs.upkeep()).await.unwrap();

    let left = format!("reveille.job_unique where job <> {ended}");
    assert_eq!((fixture.count("reveille.job_unique").await, fixture.count(&left).await), (2, 2));
}

#[tokio::test]
async fn a_dead_job_has_no_key_and_comes_back_without_one() {
    let fixture = Fixture::new().await;
    let _worker = fixture.worker().start().await.unwrap();
    let unique = || job("no").max_attempts(1).unique(Unique::by_key("k"));
    let (first, _) = add(&fixture, unique()).await;
    fixture.failed(first, 1).await;

    let (second, existing) = add(&fixture, unique().delay(NEVER)).await;
    let back = soon(fixture.jobs.redrive(Redrive::one(first))).await.unwrap();

    assert!(!existing && second != first);
    assert_eq!(back, [first]);
}

#[tokio::test]
async fn a_window_of_no_length_is_none() {
    let fixture = Fixture::new().await;
    let unique = || job("ok").unique(Unique::by_key("k").window(Duration::ZERO));
    let _worker = fixture.worker().start().await.unwrap();
    let (first, _) = add(&fixture, unique()).await;
    fixture.completed(first).await;

    assert!(!add(&fixture, unique()).await.1);
}
