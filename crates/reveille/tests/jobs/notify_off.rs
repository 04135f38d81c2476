//! Notifications that are off are off: none is sent for jobs, and nothing is lost.

use std::time::Duration;

use futures_util::StreamExt;
use reveille::database::DatabaseOptions;
use reveille::jobs::{Job, JobEvent, JobId, JobsOptions, NewJob, Outcome, Redrive, State, Worker};
use serde_json::Value;
use tokio::sync::mpsc::{Receiver, channel};
use tokio::task::JoinSet;
use tokio_postgres::{AsyncMessage, Client, NoTls};

use crate::support::{Fixture, NEVER, Node, job, soon};

/// A connection that listens on the channel of the schema.
struct Listener {
    client: Client,
    payloads: Receiver<String>,
    _reading: JoinSet<()>,
}

impl Listener {
    async fn on(fixture: &Fixture) -> Self {
        let (client, mut connection) = tokio_postgres::connect(&fixture.db.url(), NoTls).await.expect("connects");
        let (sender, payloads) = channel(4096);
        let mut reading = JoinSet::new();
        reading.spawn(async move {
            let mut messages = futures_util::stream::poll_fn(move |context| connection.poll_message(context));
            while let Some(Ok(message)) = messages.next().await {
                if let AsyncMessage::Notification(note) = message {
                    let _ = sender.send(note.payload().to_owned()).await;
                }
            }
        });
        client.batch_execute(&format!("listen {}", fixture.database.hint_channel())).await.expect("listens");
        Self { client, payloads, _reading: reading }
    }

    /// All notifications until now. They arrive in the order of their commits: ours is the last.
    async fn received(&mut self) -> Vec<String> {
        self.client.batch_execute("select pg_notify(reveille.hint_channel(), 'the end')").await.expect("is sent");
        let mut received = Vec::new();
        loop {
            match soon(self.payloads.recv()).await.expect("the connection lives") {
                end if end == "the end" => return received,
                payload => received.push(payload),
            }
        }
    }
}

/// A process as an operator configures it: notifications off, claims every 100 ms; a heartbeat, if
/// it had one, would be often.
async fn silent(fixture: &Fixture) -> Node {
    let environment = |name: &str| match name {
        "REVEILLE_NOTIFY" => Some("off".to_owned()),
        "REVEILLE_FALLBACK_INTERVAL_S" => Some("0.1".to_owned()),
        _ => None,
    };
    let options = JobsOptions::from_environment(environment).unwrap();
    Node::at(DatabaseOptions::new(fixture.db.url()).heartbeat(Duration::from_millis(100)), options).await
}

/// Two processes with workers: enqueues of every kind, failures with retries, snoozes, leases made
/// and ended, cancelling, redriving and pausing. Not one notification, not even a heartbeat's.
#[tokio::test]
async fn two_workers_with_notifications_off_do_everything_and_send_none() {
    let fixture = Fixture::new().await;
    let mut channel = Listener::on(&fixture).await;
    let (one, other) = (silent(&fixture).await, silent(&fixture).await);
    let snoozing = |node: &Node| {
        node.worker().queue("one", 1).lease(Duration::from_millis(600)).handler::<Value, _>(
            "later",
            |_, job: Job| async move {
                // The first time it is put off, which is not counted.
                if job.token().to_string().contains(".1.") {
                    Outcome::Snooze(Duration::from_millis(50))
                } else {
                    Outcome::Done
                }
            },
        )
    };
    let worker = snoozing(&one).handler::<Value, _>("polite", |_, job: Job| async move {
        job.cancelled().await;
        Err::<(), _>("stopped")
    });
    let _worker = worker.start().await.unwrap();
    let _idle = Worker::builder(&other.jobs)
        .queue("two", 1)
        .handler::<Value, _>("ok", |_, _: Job| async {})
        .start()
        .await
        .unwrap();
    let enqueue = async |kind: &str| other.enqueue(job(kind).queue("one").max_attempts(2)).await;

    let done = enqueue("ok").await;
    one.completed(done).await;
    let dead = enqueue("no").await;
    one.failed(dead, 2).await;
    let later = enqueue("later").await;
    one.completed(later).await;
    // Its lease is renewed, and with a renewal its worker notices that it is to be cancelled.
    let unwanted = enqueue("polite").await;
    one.started(unwanted, 1).await;
    soon(other.jobs.cancel(unwanted)).await.unwrap();
    let cancelled =
        |event: &JobEvent| matches!(event, JobEvent::Settled { job, state: State::Cancelled } if job.id == unwanted);
    one.events.until(cancelled).await;
    soon(other.jobs.pause("one")).await.unwrap();
    let held = enqueue("ok").await;
    soon(other.jobs.resume("one")).await.unwrap();
    one.completed(held).await;
    soon(other.jobs.redrive(Redrive::one(dead))).await.unwrap();
    one.events.until(|event| matches!(event, JobEvent::Failed { job, .. } if job.id == dead)).await;
    let mut client = fixture.client().await;
    let transaction = client.transaction().await.unwrap();
    let inside = other.jobs.enqueue_in(&transaction, vec![job("ok").queue("one")]).await.unwrap()[0].id;
    transaction.commit().await.unwrap();
    one.completed(inside).await;

    assert_eq!(channel.received().await, [""; 0]);
    assert_eq!(one.events.count(|event| *event == JobEvent::Notified), 0);
}

/// The end of a lease whose worker was lost is found without having been announced.
#[tokio::test]
async fn with_notifications_off_a_lost_workers_job_runs_again_when_its_lease_ends() {
    let fixture = Fixture::new().await;
    let mut channel = Listener::on(&fixture).await;
    let (doomed, heir) = (silent(&fixture).await, silent(&fixture).await);
    let hanging = Worker::builder(&doomed.jobs).lease(Duration::from_millis(500));
    let hanging = hanging.handler::<Value, _>("ok", |_, _| std::future::pending::<()>()).start().await.unwrap();
    let id = doomed.enqueue(job("ok")).await;
    doomed.started(id, 1).await;
    drop(hanging);
    doomed.database.close().await;

    let _heir = heir.worker().start().await.unwrap();
    heir.completed(id).await;

    assert_eq!(channel.received().await, [""; 0]);
}

/// Plain SQL does not see our environment: a setting of its session, role or database turns
/// notifications off, or its queue is quiet.
#[tokio::test]
async fn sql_is_silent_where_its_session_or_its_queue_says_so() {
    let fixture = Fixture::new().await;
    let mut channel = Listener::on(&fixture).await;
    let client = fixture.client().await;
    let enqueue = async |queue: &str| {
        let call = "select reveille.enqueue('ok', '{}', queue => $1)";
        JobId(client.query_one(call, &[&queue]).await.unwrap().get(0))
    };
    soon(silent(&fixture).await.jobs.quiet("still", true)).await.unwrap();

    enqueue("loud").await;
    enqueue("still").await;
    client.batch_execute("set reveille.notify = off").await.unwrap();
    let unannounced = enqueue("loud").await;
    client.batch_execute("select reveille.enqueue_many('[{\"kind\": \"ok\", \"queue\": \"loud\"}]')").await.unwrap();
    client.batch_execute("reset reveille.notify").await.unwrap();
    enqueue("loud").await;

    assert_eq!(channel.received().await, ["hint\njobs loud", "hint\njobs loud"]);
    let node = silent(&fixture).await;
    let _worker = node.worker().queue("loud", 1).start().await.unwrap();
    node.completed(unannounced).await;
}

/// A job of the queue that a worker holds, as its token; nothing was sent for it.
async fn held(node: &Node, client: &Client, queue: &str) -> String {
    let id = node.enqueue(job("ok").queue(queue)).await;
    let hold =
        "update reveille.job set nonce = 7, worker = 'w', epoch = 1, attempt = 1, due_at = now() + interval '1 hour'
                where id = $1";
    client.execute(hold, &[&id.0]).await.expect("is held");
    format!("{}.1.7", id.0)
}

/// The functions that end an attempt notify as those that enqueue do: not from a silent session,
/// and not for a quiet queue.
#[tokio::test]
async fn settling_in_sql_is_silent_where_its_session_or_its_queue_says_so() {
    let fixture = Fixture::new().await;
    let mut channel = Listener::on(&fixture).await;
    let (node, client) = (silent(&fixture).await, fixture.client().await);
    let settle = async |queue: &str| {
        for call in ["fail($1, 'c', 'm')", "snooze($1, '1 s')", "complete($1)"] {
            let token = held(&node, &client, queue).await;
            client.query(&format!("select reveille.{call}"), &[&token]).await.expect("is settled");
        }
    };
    soon(node.jobs.quiet("still", true)).await.unwrap();

    settle("still").await;
    let from_a_quiet_queue = channel.received().await;
    client.batch_execute("set reveille.notify = off").await.unwrap();
    settle("loud").await;
    let from_a_silent_session = channel.received().await;
    client.batch_execute("reset reveille.notify").await.unwrap();
    settle("loud").await;

    assert_eq!(from_a_quiet_queue, [""; 0]);
    assert_eq!(from_a_silent_session, [""; 0]);
    assert_eq!(channel.received().await, ["hint\njobs loud"; 2], "for a retry and for a snooze");
}

/// What gives a job back or brings it forward: a drain, a retry at once, another priority, and the
/// handler's own transaction.
#[tokio::test]
async fn with_notifications_off_nothing_that_moves_a_job_sends_one() {
    let fixture = Fixture::new().await;
    let mut channel = Listener::on(&fixture).await;
    let (node, url) = (silent(&fixture).await, fixture.db.url());
    let worker = Worker::builder(&node.jobs).handler::<Value, _>("hang", |_, _| std::future::pending::<()>());
    let worker = worker.handler::<u64, _>("inside", move |which, job: Job| {
        let url = url.clone();
        async move {
            let hour = Duration::from_secs(3600);
            let outcome = match which {
                0 => Outcome::Done,
                1 => Outcome::Snooze(hour),
                2 => Outcome::retry("c", "m"),
                _ => Outcome::dead("c", "m"),
            };
            let client = reveille_testkit::connect(&url).await;
            job.settle_in(&client, outcome).await.expect("is settled");
        }
    });
    let worker = worker.start().await.unwrap();
    let hanging = node.enqueue(job("hang")).await;
    node.started(hanging, 1).await;
    let scheduled = node.enqueue(job("ok").queue("unserved").delay(NEVER)).await;

    soon(node.jobs.retry_now(scheduled)).await.unwrap();
    soon(node.jobs.reprioritise(scheduled, 1)).await.unwrap();
    for which in 0_u64..4 {
        let inside = node.enqueue(NewJob::new("inside", &which).unwrap().max_attempts(1)).await;
        node.started(inside, 1).await;
    }
    let drained = soon(worker.drain(Duration::from_millis(200))).await;
    node.database.close().await;

    assert_eq!(drained.released, 1, "the one that hangs");
    assert_eq!(channel.received().await, [""; 0]);
}

/// With notifications on, the listener receives some: the tests above would notice one.
#[tokio::test]
async fn with_notifications_on_other_processes_are_notified() {
    let fixture = Fixture::new().await;
    let mut channel = Listener::on(&fixture).await;
    let listener = Node::at(DatabaseOptions::new(fixture.db.url()).heartbeat(NEVER), JobsOptions::default()).await;
    let _worker = listener.worker().start().await.unwrap();
    let first = listener.enqueue(job("ok")).await;
    listener.completed(first).await;

    let id = fixture.enqueue(job("ok")).await;
    listener.completed(id).await;
    fixture.jobs.close().await;

    assert!(!channel.received().await.is_empty());
}
