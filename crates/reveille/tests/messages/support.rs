//! Fixtures for the tests of messages: a database with the schema, and the queues opened on it.

use std::future::Future;
use std::time::Duration;

use reveille::database::{Database, DatabaseOptions};
use reveille::messages::{
    Messages, MessagesError, MessagesOptions, PartitionName, PushItem, PushOutcome, Pushed, QueueName,
};
use reveille_testkit::TestDatabase;
use tokio::time::timeout;
use tokio_postgres::{Client, SimpleQueryMessage};

/// No test waits longer than this for anything.
pub(crate) const SOON: Duration = Duration::from_secs(30);

/// Fail loudly instead of hanging.
pub(crate) async fn soon<T>(work: impl Future<Output = T>) -> T {
    timeout(SOON, work).await.expect("it took too long")
}

/// A database of its own, and the queues in it.
pub(crate) struct Fixture {
    pub(crate) messages: Messages,
    pub(crate) database: Database,
    /// Dropped last.
    pub(crate) db: TestDatabase,
}

impl Fixture {
    pub(crate) async fn new() -> Self {
        Self::with(MessagesOptions::default()).await
    }

    pub(crate) async fn with(options: MessagesOptions) -> Self {
        let db = TestDatabase::new().await;
        let database = soon(Database::connect(DatabaseOptions::new(db.url()))).await.expect("connects");
        let messages = Messages::new(&database, options);
        Self { messages, database, db }
    }

    /// Another process on the same database.
    pub(crate) async fn node(&self) -> Messages {
        self.node_at(&self.db.url(), MessagesOptions::default()).await
    }

    /// Another process, which reaches the database in its own way.
    pub(crate) async fn node_at(&self, url: &str, options: MessagesOptions) -> Messages {
        let database = soon(Database::connect(DatabaseOptions::new(url))).await.expect("connects");
        Messages::new(&database, options)
    }

    /// A plain connection, for what a test wants to see or do behind the library's back.
    pub(crate) async fn client(&self) -> Client {
        self.db.client().await
    }

    /// Everything in a partition's log: sequence, transaction id, payload.
    pub(crate) async fn log(&self, queue: &str, partition: &str) -> Vec<(i64, String, Vec<u8>)> {
        let read =
            "select s.last_seq - s.n + i.place, coalesce(s.transaction_ids[i.place], i.id::text), s.payloads[i.place]
             from reveille.segment s
             join reveille.partition p on p.id = s.partition
             join reveille.queue q on q.id = p.queue
             cross join lateral unnest(s.ids) with ordinality as i (id, place)
             where q.name = $1 and p.name = $2
             order by 1";
        let rows = self.client().await.query(read, &[&queue, &partition]).await.expect("reads");
        rows.iter().map(|row| (row.get(0), row.get(1), row.get(2))).collect()
    }

    /// The payloads of a partition's log, in order, as text.
    pub(crate) async fn texts(&self, queue: &str, partition: &str) -> Vec<String> {
        let log = self.log(queue, partition).await;
        log.into_iter().map(|(_, _, payload)| String::from_utf8(payload).expect("is text")).collect()
    }

    /// How many rows a query finds.
    pub(crate) async fn count(&self, from: &str) -> i64 {
        self.client().await.query_one(&format!("select count(*) from {from}"), &[]).await.expect("counts").get(0)
    }
}

/// How many rows a query brings, and how many blocks were read for it, also by the functions it
/// calls, as our sessions plan.
pub(crate) async fn rows_and_blocks(client: &Client, query: &str) -> (usize, u64) {
    client.batch_execute("set enable_seqscan = off; set plan_cache_mode = force_generic_plan").await.expect("is set");
    let explained =
        client.simple_query(&format!("explain (analyze, buffers, format json) {query}")).await.expect("explains");
    let text = explained.iter().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => row.get(0),
        _ => None,
    });
    let plan: serde_json::Value = serde_json::from_str(text.expect("has a plan")).expect("is JSON");
    let node = &plan[0]["Plan"];
    let count = |name: &str| node[name].as_f64().expect("is counted");
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small whole numbers")]
    (count("Actual Rows").round() as usize, (count("Shared Hit Blocks") + count("Shared Read Blocks")) as u64)
}

pub(crate) fn queue(name: &str) -> QueueName {
    QueueName::new(name).expect("is a name")
}

pub(crate) fn partition(name: &str) -> PartitionName {
    PartitionName::new(name).expect("is a name")
}

/// A message for a partition.
pub(crate) fn item(queue_name: &str, partition_name: &str, payload: &str) -> PushItem {
    PushItem::new(queue(queue_name), payload.to_owned()).partition(partition(partition_name))
}

/// Push one text to the usual partition, and expect it stored.
pub(crate) async fn push(messages: &Messages, queue_name: &str, payload: &str) -> Pushed {
    let pushed = soon(messages.push_one(PushItem::new(queue(queue_name), payload.to_owned()))).await;
    pushed.expect("is stored")
}

/// The sequences of stored messages.
pub(crate) fn seqs(answers: &[Result<Pushed, MessagesError>]) -> Vec<i64> {
    answers.iter().map(|answer| seq(answer.as_ref().expect("is stored"))).collect()
}

/// The sequence of a stored message.
pub(crate) fn seq(pushed: &Pushed) -> i64 {
    match pushed.outcome {
        PushOutcome::Stored { seq } => seq,
        ref other => panic!("was not stored: {other:?}"),
    }
}

/// Wait until some session of the test's database waits for a lock.
pub(crate) async fn until_blocked(client: &Client, count: i64) {
    let blocked = "select count(*) from pg_stat_activity
         where datname = current_database() and wait_event_type = 'Lock'";
    let begun = tokio::time::Instant::now();
    while client.query_one(blocked, &[]).await.expect("counts").get::<_, i64>(0) < count {
        assert!(begun.elapsed() < SOON, "nobody waits for a lock");
        tokio::task::yield_now().await;
    }
}
