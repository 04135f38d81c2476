//! Workers that are killed, stopped, or cut off: real processes, and connections that break.

use std::io::{BufRead, BufReader, Lines, Read, Write};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use reveille::database::DatabaseOptions;
use reveille::jobs::{Job, JobEvent, JobsOptions, State, Worker};
use reveille_testkit::{TestDatabase, connect};
use serde_json::Value;
use tokio_postgres::Client;

use crate::support::{Fixture, NEVER, Node, all_new, job, soon};

const PLACE: &str = "REVEILLE_TEST_PLACE_OF_JOBS";
const LEASE: Duration = Duration::from_secs(2);

/// A program of its own that works on jobs; killed with the value, if not before.
struct Program {
    process: Child,
    output: Option<Lines<BufReader<ChildStdout>>>,
}

impl Program {
    /// The same test again, which finds in its environment that it is to work.
    fn start(test: &str, url: &str) -> Self {
        let mut command = Command::new(std::env::current_exe().expect("a test knows its program"));
        command.args([test, "--exact", "--nocapture"]).env(PLACE, url);
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
        let mut output = BufReader::new(process.stdout.take().expect("its output is piped")).lines();
        let ready = output.by_ref().map_while(Result::ok).any(|line| line.contains("at work"));
        assert!(ready, "the program did not begin to work");
        Self { process, output: Some(output) }
    }

    /// Lets it go on with what it waits for.
    fn go(&mut self) {
        let orders = self.process.stdin.as_mut().expect("its input is piped");
        orders.write_all(b"go\n").expect("it reads");
    }

    /// The line that it prints with these words.
    async fn prints(&mut self, words: &'static str) -> String {
        let output = self.output.take().expect("its lines are read once");
        let line = move || output.map_while(Result::ok).find(|line| line.contains(words));
        let line = soon(tokio::task::spawn_blocking(line)).await.expect("it is read");
        line.unwrap_or_else(|| panic!("the program ended without having printed \"{words}\""))
    }

    fn signal(&self, signal: &str) {
        let id = self.process.id().to_string();
        let sent = Command::new("kill").args([signal, &id]).status().expect("kill runs");
        assert!(sent.success(), "{signal}");
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[expect(clippy::disallowed_methods, reason = "how a test passes its database to the program it starts")]
fn place_of_work() -> Option<String> {
    std::env::var(PLACE).ok()
}

/// What the started program does, until it is killed or its parent goes away: jobs that note that
/// they began, take a little, and end.
async fn work(url: &str) {
    let node = Node::at(DatabaseOptions::new(url), JobsOptions::default()).await;
    let _worker = notes(&node, url, Duration::from_millis(300)).await.start().await.expect("starts");
    println!("at work");
    let gone = tokio::task::spawn_blocking(|| std::io::stdin().read_to_end(&mut Vec::new()));
    let _ = gone.await;
}

/// What the started program does in the test of a late completion: a job that notes that it began,
/// and then keeps its thread until it may go on. So nothing keeps it from completing, not even that
/// its worker finds the lease lost.
async fn work_late(url: &str) {
    let node = Node::at(DatabaseOptions::new(url), JobsOptions::default()).await;
    let (client, (go, orders)) = (Arc::new(connect(url).await), std::sync::mpsc::sync_channel(1));
    let orders = Arc::new(Mutex::new(orders));
    let worker = Worker::builder(&node.jobs).lease(LEASE).handler::<Value, _>("note", move |_, job: Job| {
        let (client, orders) = (Arc::clone(&client), Arc::clone(&orders));
        async move {
            note_beginning(&client, &job).await?;
            let order = tokio::task::block_in_place(|| orders.lock().expect("is whole").recv());
            order.map_err(|error| error.to_string())
        }
    });
    let _worker = worker.start().await.expect("starts");
    println!("at work");
    let reading = tokio::task::spawn_blocking(move || {
        for _ in std::io::stdin().lines() {
            let _ = go.send(());
        }
    });
    let answered = |event: &JobEvent| matches!(event, JobEvent::LeaseLost { .. } | JobEvent::Completed { .. });
    let answer = match node.events.until(answered).await {
        JobEvent::LeaseLost { .. } => "the lease is lost",
        _ => "recorded",
    };
    println!("its completion was answered: {answer}");
    let _ = reading.await;
}

async fn note_beginning(client: &Client, job: &Job) -> Result<(), String> {
    let note = "insert into began (job, attempt) values ($1, $2)";
    client.execute(note, &[&job.id().0, &job.attempt()]).await.map(drop).map_err(|error| error.to_string())
}

async fn notes(node: &Node, url: &str, takes: Duration) -> reveille::jobs::WorkerBuilder {
    let client = Arc::new(connect(url).await);
    Worker::builder(&node.jobs).slots(100).lease(LEASE).handler::<Value, _>("note", move |_, job: Job| {
        let client = Arc::clone(&client);
        async move {
            note_beginning(&client, &job).await?;
            tokio::time::sleep(takes).await;
            Ok::<_, String>(())
        }
    })
}

async fn number(client: &Client, ask: &str) -> i64 {
    client.query_one(ask, &[]).await.expect("the database answers").get(0)
}

async fn until(client: &Client, ask: &str, wanted: i64) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while number(client, ask).await < wanted {
        assert!(Instant::now() < deadline, "{ask}: {} and not {wanted}", number(client, ask).await);
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

async fn place() -> (TestDatabase, Client, Node) {
    let db = TestDatabase::new().await;
    let client = db.client().await;
    client.batch_execute("create table began (job bigint, attempt int)").await.expect("is made");
    let node = Node::at(DatabaseOptions::new(db.url()).heartbeat(NEVER), JobsOptions::default()).await;
    (db, client, node)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_jobs_of_a_worker_that_is_killed_run_again_and_none_is_lost_or_done_twice() {
    if let Some(url) = place_of_work() {
        return work(&url).await;
    }
    let (db, client, node) = place().await;
    let heir = notes(&node, &db.url(), Duration::ZERO).await;
    let test = "crash::a_hundred_jobs_of_a_worker_that_is_killed_run_again_and_none_is_lost_or_done_twice";
    let victim = Program::start(test, &db.url());
    let ids = all_new(node.jobs.enqueue_many((0..100).map(|_| job("note")).collect()).await);
    until(&client, "select count(*) from began", 100).await;

    victim.signal("-KILL");
    let _heir = heir.start().await.expect("starts");
    until(&client, "select count(*) from reveille.job_done where state = 'done'", 100).await;

    assert_eq!(number(&client, "select count(*) from reveille.job").await, 0);
    assert_eq!(number(&client, "select count(distinct id) from reveille.job_done").await, 100);
    let again = number(&client, "select count(*) from reveille.job_done where attempt = 2").await;
    assert!(again > 0, "the worker was killed too late");
    assert_eq!(ids.len(), 100);
    // Each ran again when its lease had ended, and not before.
    assert_eq!(number(&client, "select count(*) from began").await, 100 + again);
}

/// Stopped for longer than its lease, a worker wakes up and completes its job: too late.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_was_stopped_past_its_lease_completes_nothing_that_another_has_taken() {
    if let Some(url) = place_of_work() {
        return work_late(&url).await;
    }
    let (db, client, node) = place().await;
    let test = "crash::a_worker_that_was_stopped_past_its_lease_completes_nothing_that_another_has_taken";
    let mut stopped = Program::start(test, &db.url());
    let id = node.enqueue(job("note")).await;
    until(&client, "select count(*) from began", 1).await;
    stopped.signal("-STOP");
    // The heir holds it for as long as it likes.
    let heir = notes(&node, &db.url(), NEVER).await;
    let _heir = heir.start().await.expect("starts");
    until(&client, "select count(*) from began", 2).await;

    stopped.signal("-CONT");
    stopped.go();
    let answer = stopped.prints("its completion was answered").await;

    assert!(answer.ends_with("the lease is lost"), "{answer}");
    let held = node.explain(id).await;
    assert_eq!((held.state, held.attempt), (State::Running, 2));
    assert_eq!(number(&client, "select count(*) from reveille.job_done").await, 0);
}

/// A job that runs for long is not taken from its worker: the lease is renewed well before it ends.
#[tokio::test]
async fn a_lease_is_kept_while_its_handler_runs() {
    let fixture = Fixture::new().await;
    let (go, lease) = (Arc::new(tokio::sync::Notify::new()), Duration::from_secs(6));
    let worker = {
        let go = Arc::clone(&go);
        fixture.worker().lease(lease).handler::<Value, _>("long", move |_, _| {
            let go = Arc::clone(&go);
            async move { go.notified().await }
        })
    };
    let _worker = worker.start().await.unwrap();
    let other = fixture.another().await;
    let other_worker = other.worker().handler::<Value, _>("long", |_, _| async {});
    let id = fixture.enqueue(job("long")).await;
    fixture.started(id, 1).await;
    let _other_worker = other_worker.start().await.unwrap();
    let client = fixture.client().await;
    let end: std::time::SystemTime = client.query_one("select due_at from reveille.job", &[]).await.unwrap().get(0);

    let renewed = "select count(*) from reveille.job where due_at > $1";
    let renewed = async || client.query_one(renewed, &[&end]).await.expect("counts").get::<_, i64>(0) == 1;
    let kept = async {
        while !renewed().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    soon(kept).await;
    go.notify_one();
    fixture.completed(id).await;

    assert_eq!(other.events.count(|event| matches!(event, JobEvent::Claimed { .. })), 0);
    assert_eq!(fixture.explain(id).await.attempt, 1);
}

/// A payload that kills its worker every time ends with the dead letters, counted at the claim.
#[tokio::test]
async fn a_job_that_kills_its_workers_is_dead_after_its_last_attempt() {
    let fixture = Fixture::new().await;
    let id = fixture.enqueue(job("deadly").max_attempts(2)).await;

    for attempt in 1..=2 {
        let doomed = fixture.another().await;
        let worker = Worker::builder(&doomed.jobs);
        let worker = worker.handler::<Value, _>("deadly", |_, _| std::future::pending::<()>()).start().await.unwrap();
        doomed.started(id, attempt).await;
        drop(worker);
        doomed.database.close().await;
        // Nothing renews it any more: its lease ends now.
        fixture.sql("update reveille.job set due_at = now() - interval '1 s'").await;
    }
    let _last = fixture.worker().start().await.unwrap();
    fixture.events.until(|event| matches!(event, JobEvent::Ended { job, .. } if job.id == id)).await;

    let dead = fixture.explain(id).await;
    assert_eq!((dead.state, dead.attempt), (State::Dead, 2));
    assert!(dead.because.contains("lease_expired"), "{}", dead.because);
}

/// The answer to a claim is lost with its connection: the job is given back at once, without
/// counting the attempt, and not when its lease ends.
#[tokio::test]
async fn a_claim_whose_answer_was_lost_is_given_back_at_once() {
    let fixture = Fixture::new().await;
    let (proxy, url) = fixture.db.proxied().await;
    let node =
        Node::at(DatabaseOptions::new(url).listen_url(fixture.db.url()).heartbeat(NEVER), JobsOptions::default()).await;
    let worker = node.worker().lease(NEVER).start().await.unwrap();
    let first = node.enqueue(job("ok")).await;
    node.completed(first).await;
    fixture.client().await.batch_execute("set lock_timeout = 0").await.unwrap();

    // The claim is sent and takes effect; its answer does not arrive.
    proxy.cut_after(reveille_testkit::Direction::ToClient, 20);
    let id: i64 = fixture.client().await.query_one("select reveille.enqueue('ok', '{}')", &[]).await.unwrap().get(0);
    let id = reveille::jobs::JobId(id);
    node.completed(id).await;

    assert_eq!(fixture.explain(id).await.attempt, 1, "the lost claim does not count as an attempt");
    soon(worker.drain(Duration::from_secs(5))).await;
}

/// PostgreSQL goes away while jobs run: their outcomes are recorded when it is back.
#[tokio::test]
async fn what_ended_during_an_outage_is_recorded_after_it() {
    let fixture = Fixture::new().await;
    let (proxy, url) = fixture.db.proxied().await;
    let node = Node::at(DatabaseOptions::new(url).heartbeat(NEVER), JobsOptions::default()).await;
    let go = Arc::new(tokio::sync::Notify::new());
    let worker = {
        let go = Arc::clone(&go);
        Worker::builder(&node.jobs).handler::<Value, _>("ok", move |_, _| {
            let go = Arc::clone(&go);
            async move { go.notified().await }
        })
    };
    let _worker = worker.start().await.unwrap();
    let id = node.enqueue(job("ok")).await;
    node.started(id, 1).await;

    proxy.refuse();
    proxy.cut();
    go.notify_one();
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(fixture.explain(id).await.state, State::Running);
    proxy.heal();

    node.completed(id).await;
    assert_eq!(fixture.explain(id).await.state, State::Done);
}
