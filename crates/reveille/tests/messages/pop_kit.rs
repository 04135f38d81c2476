//! Helpers for the tests of pops: consumers in one line, and queries behind the library's back.

use std::sync::Arc;
use std::time::Duration;

use reveille::database::{Database, DatabaseOptions};
use reveille::messages::{Batch, GroupName, Messages, MessagesOptions, Pop};
use reveille_testkit::{Events, TestDatabase};
use reveille_wake::{Cause, Event};
use tokio::task::JoinHandle;
use tokio_postgres::Client;

use crate::support::{Fixture, item, queue, soon};

/// So long that nothing in a test is explained by it.
pub(crate) const NEVER: Duration = Duration::from_secs(3600);
/// Longer than any wait of a test.
pub(crate) const WAIT: Duration = Duration::from_secs(20);

pub(crate) fn group(name: &str) -> GroupName {
    GroupName::new(name).expect("is a name")
}

/// Messages with the events of their wake engine, on a database whose heartbeat explains nothing.
pub(crate) struct Node {
    pub(crate) messages: Messages,
    pub(crate) events: Events<Event>,
}

impl Node {
    pub(crate) async fn on(db: &TestDatabase) -> Self {
        Self::at(&db.url(), NEVER).await
    }

    pub(crate) async fn at(url: &str, heartbeat: Duration) -> Self {
        Self::with(DatabaseOptions::new(url).heartbeat(heartbeat)).await
    }

    pub(crate) async fn with(options: DatabaseOptions) -> Self {
        Self::over(&soon(Database::connect(options)).await.expect("connects"))
    }

    pub(crate) fn over(database: &Database) -> Self {
        let events = Events::new();
        let recorder = events.clone();
        let observer = Arc::new(move |event: &Event| recorder.record(*event));
        let messages = Messages::new(database, MessagesOptions::default().observer(observer));
        Self { messages, events }
    }

    /// Starts the dispatcher, and waits until hints are trusted.
    pub(crate) async fn proven(self) -> Self {
        none(&self.messages, "nobody-pushes-here").await;
        self.events.until(|event| matches!(event, Event::Link(link) if link.is_proven())).await;
        self
    }

    /// A pop that waits, after a claim round has found nothing for it.
    pub(crate) async fn parked(&self, pop: Pop) -> JoinHandle<Option<Batch>> {
        let mut events = self.events.reader_from_now();
        let waiting = waits(&self.messages, pop);
        events.until(|event| matches!(event, Event::RoundEnded { .. })).await;
        waiting
    }

    /// Another pop that waits, with or without a claim round. Meanwhile no other pop may end.
    pub(crate) async fn joined(&self, pop: Pop) -> JoinHandle<Option<Batch>> {
        let before = self.messages.figures().waiting;
        let waiting = waits(&self.messages, pop);
        soon(async {
            while self.messages.figures().waiting == before {
                tokio::task::yield_now().await;
            }
        })
        .await;
        waiting
    }

    /// The cause of the last claim round that found something.
    pub(crate) fn cause_of_last_find(&self) -> Option<Cause> {
        let found = |event: &Event| match event {
            Event::RoundEnded { cause, outcome, .. } if outcome.found_work() => Some(*cause),
            _ => None,
        };
        self.events.all().iter().rev().find_map(found)
    }

    /// How many claim rounds have ended.
    pub(crate) fn rounds(&self) -> usize {
        self.events.count(|event| matches!(event, Event::RoundEnded { .. }))
    }
}

/// In a task of its own, for what the test wants to happen beside it.
#[expect(clippy::disallowed_methods, reason = "the test waits for the handle, and nothing outlives its runtime")]
pub(crate) fn spawn<T: Send + 'static>(work: impl Future<Output = T> + Send + 'static) -> JoinHandle<T> {
    tokio::spawn(work)
}

/// A pop that waits.
pub(crate) fn waits(messages: &Messages, pop: Pop) -> JoinHandle<Option<Batch>> {
    let messages = messages.clone();
    spawn(async move { messages.pop(pop.wait(WAIT)).await.expect("pops") })
}

/// Pop once, without waiting.
pub(crate) async fn pop(messages: &Messages, pop: Pop) -> Option<Batch> {
    soon(messages.pop(pop)).await.expect("pops")
}

/// Pop once from a queue, without waiting, and expect something.
pub(crate) async fn pop_queue(messages: &Messages, name: &str, batch: u32) -> Batch {
    pop(messages, Pop::queue(queue(name)).batch(batch)).await.expect("there is something")
}

/// Pop once from a queue, and expect nothing.
pub(crate) async fn none(messages: &Messages, name: &str) {
    let popped = pop(messages, Pop::queue(queue(name))).await;
    assert!(popped.is_none(), "{popped:?}");
}

/// The payloads of a batch, as text.
pub(crate) fn texts(batch: &Batch) -> Vec<String> {
    let text = |message: &reveille::messages::Message| String::from_utf8(message.payload.as_bytes().to_vec());
    batch.messages().map(|message| text(message).expect("is text")).collect()
}

/// Push texts to a partition in one call.
pub(crate) async fn push_to(messages: &Messages, queue_name: &str, partition: &str, payloads: &[&str]) {
    let items = payloads.iter().map(|payload| item(queue_name, partition, payload)).collect();
    for pushed in soon(messages.push(items)).await {
        pushed.expect("is stored");
    }
}

impl Fixture {
    /// Change the queue's row behind the library's back.
    pub(crate) async fn set(&self, name: &str, columns: &str) {
        let sql = format!("update reveille.queue set {columns} where name = $1");
        assert_eq!(self.client().await.execute(&sql, &[&name]).await.expect("is set"), 1);
    }
}

/// Cursors with undelivered messages that are not due, in partitions without `new_since`. The
/// invariant is that there are none, in any snapshot.
pub(crate) async fn stranded(client: &Client) -> i64 {
    let broken = "select count(*)
         from reveille.partition_row
         join reveille.cursor on cursor.partition = partition_row.partition
         where partition_row.next_seq - 1 > cursor.committed
           and cursor.due_at is null
           and partition_row.new_since is null";
    client.query_one(broken, &[]).await.expect("counts").get(0)
}

/// One number from the database.
pub(crate) async fn number(client: &Client, sql: &str) -> i64 {
    client.query_one(sql, &[]).await.expect("is a number").get(0)
}
