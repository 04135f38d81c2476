//! The worker: slots, queues, cancelling, draining, and jobs it cannot do.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use reveille::database::{Database, DatabaseOptions, StatementMode};
use reveille::jobs::{Cancelled, Hook, Job, JobEvent, JobsError, JobsOptions, NewJob, Outcome, State, Worker};
use reveille_testkit::{LoginSettings, Pooler};
use reveille_wake::{Cause, Event, Outcome as WakeOutcome};
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::{Notify, Semaphore};

use crate::support::{Fixture, NEVER, Node, all_new, job, soon, until_blocked, watched};

#[tokio::test]
async fn a_worker_with_invalid_options_reports_every_fault() {
    let fixture = Fixture::new().await;
    let poll_mode =
        reveille_wake::PollModeOptions { shortest: Duration::ZERO, ..reveille_wake::PollModeOptions::DEFAULT };
    let jobs = reveille::jobs::Jobs::open(&fixture.database, JobsOptions::default().poll_mode(poll_mode));
    let worker = Worker::builder(&jobs).slots(0).lease(Duration::ZERO).queue("q", 0).queue("q", 1).name("a b");

    let Err(JobsError::Worker(faults)) = worker.start().await else { panic!("it started") };

    assert_eq!(faults.len(), 7, "{faults:?}");
}

#[tokio::test]
async fn no_more_handlers_run_than_there_are_slots() {
    let fixture = Fixture::new().await;
    let (gate, running) = (Arc::new(Semaphore::new(0)), Arc::new(AtomicUsize::new(0)));
    let most = Arc::new(AtomicUsize::new(0));
    let worker = {
        let (gate, running, most) = (Arc::clone(&gate), Arc::clone(&running), Arc::clone(&most));
        Worker::builder(&fixture.jobs).slots(3).prefetch(4).handler::<Value, _>("ok", move |_, _| {
            let (gate, running, most) = (Arc::clone(&gate), Arc::clone(&running), Arc::clone(&most));
            async move {
                most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                gate.acquire().await.expect("is open").forget();
                running.fetch_sub(1, Ordering::SeqCst);
            }
        })
    };
    let worker = worker.start().await.unwrap();
    all_new(fixture.jobs.enqueue_many((0..20).map(|_| job("ok")).collect()).await);
    let mut claimed = fixture.events.reader();
    for _ in 0..7 {
        claimed.until(|event| matches!(event, JobEvent::Claimed { .. })).await;
    }
    assert_eq!(fixture.count("reveille.job where nonce is not null").await, 7, "three slots, and four ahead");

    gate.add_permits(20);
    let mut completed = fixture.events.reader();
    for _ in 0..20 {
        completed.until(|event| matches!(event, JobEvent::Completed { .. })).await;
    }

    assert_eq!(most.load(Ordering::SeqCst), 3);
    soon(worker.drain(Duration::from_secs(5))).await;
}

#[tokio::test]
async fn priorities_come_first_and_queues_by_their_weight() {
    let fixture = Fixture::new().await;
    let mut jobs = Vec::new();
    for n in 0..60 {
        jobs.push(job("ok").queue("a").priority(if n % 2 == 0 { 9 } else { 0 }));
        jobs.push(job("ok").queue("b"));
    }
    all_new(fixture.jobs.enqueue_many(jobs).await);
    let ran = Arc::new(std::sync::Mutex::new(Vec::new()));
    let worker = {
        let ran = Arc::clone(&ran);
        Worker::builder(&fixture.jobs).slots(4).queue("a", 3).queue("b", 1).handler::<Value, _>(
            "ok",
            move |_, job: Job| {
                ran.lock().expect("is whole").push((job.queue().to_owned(), job.priority()));
                async {}
            },
        )
    };

    let _worker = worker.start().await.unwrap();
    let mut completed = fixture.events.reader();
    for _ in 0..120 {
        completed.until(|event| matches!(event, JobEvent::Completed { .. })).await;
    }

    let ran = ran.lock().unwrap().clone();
    let of_a: Vec<i16> = ran.iter().filter(|(queue, _)| queue == "a").map(|(_, priority)| *priority).collect();
    // Claimed strictly in order; within one claim of four they may overtake each other on their way
    // to a slot.
    assert!(of_a[..26].iter().all(|priority| *priority == 0), "{of_a:?}");
    let early = ran[..40].iter().filter(|(queue, _)| queue == "a").count();
    assert!((22..=38).contains(&early), "a has three quarters of the slots while both have work: {early} of 40");
}

/// An older program meets a newer job: the job waits, uncharged, and a program that knows it takes
/// it.
#[tokio::test]
async fn a_job_of_an_unknown_kind_is_kept_and_not_burnt() {
    let fixture = Fixture::new().await;
    let older = fixture.worker().unknown_kind_delay(NEVER).start().await.unwrap();

    let id = fixture.enqueue(job("novel")).await;
    fixture.events.until(|event| matches!(event, JobEvent::Settled { job, .. } if job.id == id)).await;
    let other = fixture.enqueue(job("ok")).await;
    fixture.completed(other).await;

    let parked = fixture.explain(id).await;
    assert_eq!((parked.state, parked.attempt, parked.errors.len()), (State::Scheduled, 0, 0));
    assert!(parked.because.contains("no handler for the kind \"novel\""), "{}", parked.because);
    soon(older.drain(Duration::from_secs(5))).await;
    let newer = fixture.worker().handler::<Value, _>("novel", |_, _| async {});
    let _newer = newer.start().await.unwrap();
    fixture.jobs.retry_now(id).await.unwrap();
    fixture.completed(id).await;
}

#[tokio::test]
async fn arguments_that_do_not_parse_are_dead_with_the_reason() {
    #[derive(Deserialize)]
    struct Letter {
        #[expect(dead_code, reason = "only its type is wanted")]
        to: String,
    }
    let fixture = Fixture::new().await;
    let worker = fixture.worker().handler::<Letter, _>("letter", |_, _| async {});
    let _worker = worker.start().await.unwrap();

    let id = fixture.enqueue(NewJob::new("letter", &serde_json::json!({"to": 7})).unwrap()).await;
    let failed = fixture.failed(id, 1).await;
    let other = fixture.enqueue(job("ok")).await;
    fixture.completed(other).await;

    assert!(matches!(failed, JobEvent::Failed { code, state: State::Dead, .. } if code == "bad_args"));
    assert!(fixture.explain(id).await.because.contains("expected a string"));
}

#[tokio::test]
async fn a_running_job_that_is_cancelled_is_asked_to_stop_and_ends_as_cancelled() {
    let fixture = Fixture::new().await;
    let worker = fixture.worker().handler::<Value, _>("polite", |_, job: Job| async move {
        job.cancelled().await;
        Err::<(), _>("stopped half-way")
    });
    let worker = worker.handler::<Value, _>("deaf", |_, _| std::future::pending::<()>());
    let _worker = worker.cancel_grace(Duration::from_millis(50)).start().await.unwrap();
    let polite = fixture.enqueue(job("polite")).await;
    let deaf = fixture.enqueue(job("deaf")).await;
    fixture.started(polite, 1).await;
    fixture.started(deaf, 1).await;
    // From another process, which notifies the holder.
    let other = fixture.another().await;

    for id in [polite, deaf] {
        assert_eq!(soon(other.jobs.cancel(id)).await.unwrap(), Cancelled::Requested);
        fixture
            .events
            .until(|event| matches!(event, JobEvent::Settled { job, state: State::Cancelled } if job.id == id))
            .await;
    }

    assert_eq!(fixture.explain(polite).await.because, "stopped half-way");
    assert_eq!(fixture.explain(deaf).await.state, State::Cancelled);
}

#[tokio::test]
async fn a_drain_lets_jobs_end_and_gives_back_what_it_does_not_begin() {
    let fixture = Fixture::new().await;
    let go = Arc::new(Notify::new());
    let worker = {
        let go = Arc::clone(&go);
        Worker::builder(&fixture.jobs).slots(1).prefetch(1).handler::<Value, _>("ok", move |_, _| {
            let go = Arc::clone(&go);
            async move { go.notified().await }
        })
    };
    let worker = worker.start().await.unwrap();
    let ids = all_new(fixture.jobs.enqueue_many(vec![job("ok"), job("ok")]).await);
    fixture.started(ids[0], 1).await;
    fixture.events.until(|event| matches!(event, JobEvent::Claimed { job, .. } if job.id == ids[1])).await;

    let draining = worker.drain(NEVER);
    tokio::pin!(draining);
    // The one ahead goes back before the one at work is let go.
    tokio::select! {
        _ = &mut draining => panic!("it did not wait for the job at work"),
        _ = fixture.events.until(|event| matches!(event, JobEvent::Settled { job, .. } if job.id == ids[1])) => {}
    }
    go.notify_one();
    let drained = soon(draining).await;

    assert_eq!((drained.finished, drained.released), (1, 1));
    assert_eq!(fixture.explain(ids[0]).await.state, State::Done);
    let back = fixture.explain(ids[1]).await;
    assert_eq!((back.state, back.attempt), (State::Ready, 0));
}

#[tokio::test]
async fn a_drain_ends_in_its_time_and_gives_back_unharmed_what_still_runs() {
    let fixture = Fixture::new().await;
    let worker = fixture.worker().handler::<Value, _>("long", |_, _| std::future::pending::<()>());
    let worker = worker.start().await.unwrap();
    let id = fixture.enqueue(job("long")).await;
    fixture.started(id, 1).await;

    let drained = soon(worker.drain(Duration::from_millis(100))).await;

    assert_eq!((drained.finished, drained.released), (0, 1));
    let back = fixture.explain(id).await;
    assert_eq!((back.state, back.attempt), (State::Ready, 0));
}

#[derive(Default)]
struct Counting {
    seen: Arc<std::sync::Mutex<Vec<String>>>,
}

impl Hook for Counting {
    fn before(&self, job: &Job) {
        self.seen.lock().expect("is whole").push(format!("before {}", job.kind()));
    }

    fn after(&self, job: &Job, outcome: &Outcome, _: Duration) {
        self.seen.lock().expect("is whole").push(format!("after {} {outcome:?}", job.kind()));
        panic!("a hook that panics harms no job");
    }
}

#[tokio::test]
async fn hooks_see_every_attempt_and_cannot_harm_it() {
    let fixture = Fixture::new().await;
    let hook = Counting::default();
    let seen = Arc::clone(&hook.seen);
    let _worker = fixture.worker().hook(hook).start().await.unwrap();

    let id = fixture.enqueue(job("ok")).await;
    fixture.completed(id).await;

    assert_eq!(*seen.lock().unwrap(), ["before ok", "after ok Done"]);
}

#[tokio::test]
async fn jobs_run_through_a_pooler_with_a_direct_way_for_listen() {
    let fixture = Fixture::new().await;
    let Some(pooler) = Pooler::before(&fixture.db, 6, LoginSettings::Refused) else { return };
    let options = DatabaseOptions::new(pooler.url()).listen_url(fixture.db.url()).heartbeat(NEVER);
    let node = Node::at(options.statement_mode(StatementMode::Pooled), JobsOptions::default()).await;
    let worker = node.worker().start().await.unwrap();
    let id = node.enqueue(job("ok")).await;
    node.completed(id).await;

    // By plain SQL from elsewhere: the notification comes by the direct way.
    let added: i64 = fixture.client().await.query_one("select reveille.enqueue('no', '{}')", &[]).await.unwrap().get(0);
    node.failed(reveille::jobs::JobId(added), 2).await;

    assert!(node.database.link().is_proven());
    soon(worker.drain(Duration::from_secs(5))).await;
}

/// The pooler swallows LISTEN: no hint arrives, and jobs are found by polling.
#[tokio::test]
async fn jobs_run_where_listen_cannot_work() {
    let fixture = Fixture::new().await;
    let Some(pooler) = Pooler::before(&fixture.db, 6, LoginSettings::Swallowed) else { return };
    let options = DatabaseOptions::new(pooler.url()).statement_mode(StatementMode::Pooled);
    let node = Node::at(options, JobsOptions::default()).await;
    let worker = node.worker().start().await.unwrap();

    let added: i64 = fixture.client().await.query_one("select reveille.enqueue('ok', '{}')", &[]).await.unwrap().get(0);
    node.completed(reveille::jobs::JobId(added)).await;

    assert!(!node.database.link().is_proven());
    soon(worker.drain(Duration::from_secs(5))).await;
}

/// The round that claims hands out at once; another one reads the next due time, while the job
/// runs.
#[tokio::test]
async fn a_job_begins_before_the_next_due_time_of_its_queue_is_read() {
    let (wakes, options) = watched();
    let fixture = Fixture::with(options).await;
    let gate = Arc::new(Semaphore::new(0));
    let worker = {
        let gate = Arc::clone(&gate);
        fixture.worker().handler::<Value, _>("waits", move |_, _| {
            let gate = Arc::clone(&gate);
            async move { gate.acquire().await.expect("is open").forget() }
        })
    };
    let later = fixture.another().await.enqueue(job("ok").delay(Duration::from_secs(2))).await;
    let _worker = worker.start().await.unwrap();
    wakes.until(|event| matches!(event, Event::Link(link) if link.is_proven())).await;
    let mut rounds = wakes.reader();
    let id = fixture.enqueue(job("waits")).await;

    let found = |event: &Event| matches!(event, Event::RoundEnded { outcome: WakeOutcome::Filled, .. });
    rounds.until(found).await;
    let read_next_due = |event: &Event| {
        matches!(event, Event::RoundEnded { cause: Cause::More | Cause::Started, outcome: WakeOutcome::Empty, .. })
    };
    rounds.until(read_next_due).await;
    fixture.started(id, 1).await;
    // No hint of the other job came later: it begins because its due time was read again.
    fixture.completed(later).await;
    gate.add_permits(1);
    fixture.completed(id).await;
}

/// Each is committed while the worker reads the next due time after the one before.
#[tokio::test]
async fn a_chain_of_jobs_that_enqueue_each_other_never_stalls() {
    let fixture = Fixture::new().await;
    let jobs = fixture.jobs.clone();
    let worker = Worker::builder(&fixture.jobs).slots(4).handler::<u32, _>("link", move |left, _| {
        let jobs = jobs.clone();
        async move {
            if left > 0 {
                jobs.enqueue(NewJob::new("link", &(left - 1)).expect("is a job")).await.expect("is enqueued");
            }
        }
    });
    let _worker = worker.start().await.unwrap();

    fixture.enqueue(NewJob::new("link", &199_u32).unwrap()).await;

    soon(async {
        let mut done = fixture.events.reader();
        for _ in 0..200 {
            done.until(|event| matches!(event, JobEvent::Completed { .. })).await;
        }
    })
    .await;
}

/// A job becomes ready, unannounced, between the round that claimed and the one that is to read the
/// next due time, while such reads rest because claims were slow: the second round must claim.
#[tokio::test]
async fn a_job_that_became_ready_between_two_claim_rounds_is_claimed_though_reads_rest() {
    let fixture = Fixture::new().await;
    let client = fixture.client().await;
    let hidden = fixture.enqueue(job("ok").delay(Duration::from_secs(86_400))).await;
    let unhide =
        (fixture.db.url(), format!("update reveille.job set due_at = clock_timestamp() where id = {}", hidden.0));
    let (wakes, options) = watched();
    let events = reveille_testkit::Events::new();
    let seen = events.clone();
    let options = options.observer(Arc::new(move |event: &JobEvent| {
        seen.record(event.clone());
        if matches!(event, JobEvent::Claimed { job, .. } if &*job.kind == "no") {
            run_meanwhile(&unhide.0, &unhide.1);
        }
    }));
    let database = Database::connect(DatabaseOptions::new(fixture.db.url()).heartbeat(NEVER)).await.unwrap();
    let node = Node { jobs: reveille::jobs::Jobs::open(&database, options), database, events };
    let _worker = node.worker().start().await.unwrap();
    let marked = node.enqueue(job("ok")).await;
    node.completed(marked).await;
    // A claim round that takes long, because it waits for this lock.
    let watcher = fixture.client().await;
    client.batch_execute("begin; lock table reveille.job").await.unwrap();
    let mut rounds = wakes.reader_from_now();
    fixture.sql("select pg_notify(reveille.hint_channel(), E'hint\\njobs')").await;
    until_blocked(&watcher, "with clock as materialized").await;
    tokio::time::sleep(Duration::from_millis(300)).await; // tidy: sleep because that is how slow the round is to be
    client.batch_execute("commit").await.unwrap();
    rounds.until(|event| matches!(event, Event::RoundEnded { .. })).await;

    node.enqueue(job("no")).await;
    node.completed(hidden).await;

    let filled = |event: &Event| match event {
        Event::RoundEnded { cause, outcome: WakeOutcome::Filled, .. } => Some(*cause),
        _ => None,
    };
    let causes: Vec<Cause> = wakes.all().iter().filter_map(filled).collect();
    let found_by_the_next = causes.iter().skip(1).any(|cause| matches!(cause, Cause::More | Cause::Started));
    assert!(found_by_the_next, "{causes:?}: {:?}", wakes.all());
}

/// Runs a statement while nothing else of this runtime goes on.
fn run_meanwhile(url: &str, sql: &str) {
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await.unwrap();
                tokio::select! {
                    _ = connection => panic!("the connection ended"),
                    done = client.batch_execute(sql) => done.unwrap(),
                }
            });
        });
    });
}

/// A worker that waits sends nothing: it costs the heartbeat, and here there is none.
#[tokio::test]
async fn idle_workers_send_no_statement() {
    let fixture = Fixture::new().await;
    let (events, options) = watched();
    let database = Database::connect(DatabaseOptions::new(fixture.db.url()).heartbeat(NEVER)).await.unwrap();
    let jobs = reveille::jobs::Jobs::open(&database, options);
    let worker =
        Worker::builder(&jobs).queue("a", 1).queue("b", 1).queue("c", 1).handler::<Value, _>("ok", |_, _| async {});
    let _worker = worker.start().await.unwrap();
    let mut after = events.reader();
    after.until(|event| matches!(event, Event::Link(link) if link.is_proven())).await;
    // The proof of the link is followed by a last claim round for every key.
    after.until(|event| matches!(event, Event::RoundEnded { .. })).await;
    let rounds =
        |events: &reveille_testkit::Events<Event>| events.count(|event| matches!(event, Event::RoundEnded { .. }));
    // Longer than every pause of a worker that must claim again.
    let rounds_in_a_while = async || {
        let before = rounds(&events);
        tokio::time::sleep(Duration::from_secs(2)).await; // tidy: sleep because nothing is to happen meanwhile
        rounds(&events) - before
    };
    // Rounds of the start: where a read of the next due time was slow, the worker reads it once
    // more.
    soon(async { while rounds_in_a_while().await > 0 {} }).await;

    let idle = rounds_in_a_while().await;

    assert_eq!(idle, 0, "{:?}", events.all());
}
