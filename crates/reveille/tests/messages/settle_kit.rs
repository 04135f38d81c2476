//! Helpers for the tests of acks and of administration.

use std::time::SystemTime;

use reveille::messages::{Batch, Messages, Settled, Settlement};
use tokio::task::JoinSet;
use tokio_postgres::Client;

use crate::pop_kit::number;
use crate::support::{Fixture, soon};

/// Recorded, and the lease is over.
pub(crate) const RELEASED: Settled = done(true, false);
/// Recorded, and the rest is still leased.
pub(crate) const KEPT: Settled = done(false, false);
/// Recorded, and the message went to the dead letters.
pub(crate) const DEAD: Settled = done(true, true);

const fn done(released: bool, dead: bool) -> Settled {
    Settled::Done { released, dead }
}

/// Settle one thing.
pub(crate) async fn settle(messages: &Messages, settlement: Settlement) -> Settled {
    soon(messages.settle(vec![settlement])).await.pop().expect("is answered").expect("is judged")
}

/// Ack a whole batch, and expect it to hold.
pub(crate) async fn complete(messages: &Messages, batch: &Batch) {
    for settled in soon(messages.complete(batch)).await {
        assert_eq!(settled.expect("is judged"), RELEASED);
    }
}

/// Where a group's cursor in the only partition is.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Cursor {
    pub(crate) committed: i64,
    pub(crate) failures: i32,
    pub(crate) deliveries: i32,
    pub(crate) leased: bool,
    pub(crate) due: bool,
}

impl Fixture {
    /// The only cursor there is.
    pub(crate) async fn cursor(&self) -> Cursor {
        let read = "select committed, failures, deliveries, lease_until is not null, due_at <= clock_timestamp()
             from reveille.cursor";
        let row = self.client().await.query_one(read, &[]).await.expect("there is one");
        Cursor {
            committed: row.get(0),
            failures: row.get(1),
            deliveries: row.get(2),
            leased: row.get(3),
            due: row.get::<_, Option<bool>>(4).unwrap_or(false),
        }
    }

    /// What time it is in the database.
    pub(crate) async fn now(&self) -> SystemTime {
        self.client().await.query_one("select clock_timestamp()", &[]).await.expect("is a time").get(0)
    }

    /// Let every lease end now.
    pub(crate) async fn expire(&self) {
        let end = "update reveille.cursor set lease_until = clock_timestamp() - interval '1 second',
             due_at = clock_timestamp() - interval '1 second' where lease_until is not null";
        self.client().await.execute(end, &[]).await.expect("ends");
    }

    /// Make everything that was pushed so far older.
    pub(crate) async fn age(&self, seconds: i32) {
        let client = self.client().await;
        let older = format!(
            "update reveille.segment set at = at - interval '{seconds} seconds';
             update reveille.partition_row set last_at = last_at - interval '{seconds} seconds'"
        );
        client.batch_execute(&older).await.expect("is aged");
    }
}

/// A task beside the test, which ends with it.
pub(crate) struct Aside<T>(JoinSet<T>);

impl<T: Send + 'static> Aside<T> {
    pub(crate) fn begin(work: impl Future<Output = T> + Send + 'static) -> Self {
        let mut tasks = JoinSet::new();
        tasks.spawn(work);
        Self(tasks)
    }

    pub(crate) async fn done(mut self) -> T {
        soon(self.0.join_next()).await.expect("there is one").expect("did not panic")
    }
}

/// How many deadlocks the database has seen, after these nodes have left it: a session may report
/// its deadlocks only when it ends.
pub(crate) async fn deadlocks_after(nodes: &[&Messages], client: &Client) -> i64 {
    for node in nodes {
        node.close().await;
        node.database().close().await;
    }
    let sessions =
        "select count(*) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()
         and backend_type = 'client backend'";
    soon(async {
        while number(client, sessions).await > 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    number(client, "select deadlocks from pg_stat_database where datname = current_database()").await
}
