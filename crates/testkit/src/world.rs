//! The queues of one database as two processes have them, and checks of the database itself.

use std::time::Duration;

use reveille::database::{Database, DatabaseOptions};
use reveille::messages::{Messages, MessagesOptions};
use tokio_postgres::Client;

use crate::TestDatabase;

/// One database, two processes' worth of library.
#[derive(Debug)]
pub struct World {
    /// The database.
    pub db: TestDatabase,
    /// As if they were two processes: they share nothing but the database.
    pub nodes: Vec<Messages>,
}

impl World {
    /// On a new database.
    ///
    /// # Panics
    /// When it cannot be reached.
    pub async fn new() -> Self {
        let db = TestDatabase::new().await;
        let mut nodes = Vec::new();
        for _ in 0..2 {
            let database = Database::connect(DatabaseOptions::new(db.url())).await.expect("connects");
            // What was purged stays in the log until upkeep runs, and a consumer that has a lease
            // of it can still make it a dead letter.
            nodes.push(Messages::new(&database, MessagesOptions::default().upkeep_interval(Duration::ZERO)));
        }
        Self { db, nodes }
    }

    /// Ends both nodes in order.
    pub async fn close(&self) {
        for node in &self.nodes {
            node.close().await;
            node.database().close().await;
        }
    }

    /// Changes the text of one of our SQL functions: one of its rules is broken from here on.
    ///
    /// # Panics
    /// When the function does not have the rule exactly once.
    pub async fn break_rule(&self, function: &str, rule: &str, broken: &str) {
        let client = self.db.client().await;
        let read = "select pg_get_functiondef(pg_proc.oid) from pg_proc
                    join pg_namespace on pg_namespace.oid = pg_proc.pronamespace
                    where pg_namespace.nspname = 'reveille' and pg_proc.proname = $1";
        let text: String = client.query_one(read, &[&function]).await.expect("the function is there").get(0);
        assert_eq!(text.matches(rule).count(), 1, "{function} has the rule \"{rule}\" once");
        client.batch_execute(&text.replace(rule, broken)).await.expect("the function can be replaced");
    }
}

/// Deadlocks of the database so far. Sessions report what they counted to the server when they end.
///
/// # Panics
/// When the server does not say.
pub async fn deadlocks(client: &Client) -> i64 {
    let counted = "select deadlocks from pg_stat_database where datname = current_database()";
    client.query_one(counted, &[]).await.expect("the server counts deadlocks").get(0)
}

/// The partitions and groups of the queue (of all queues if none is given) whose undelivered
/// messages no consumer will be woken for, read in one snapshot.
///
/// # Panics
/// When the server does not say.
pub async fn stranded(client: &Client, queue: Option<&str>) -> Vec<String> {
    let found = client.query(STRANDED, &[&queue]).await.expect("the invariant can be asked");
    found.iter().map(|row| row.get(0)).collect()
}

const STRANDED: &str = "
    select format('%s/%s/%s: next %s, committed %s, upto %s', queue.name, partition.name, consumer_group.name,
                  partition_row.next_seq, cursor.committed, cursor.upto)
    from reveille.consumer_group
    join reveille.queue on queue.id = consumer_group.queue
    join reveille.partition_row on partition_row.queue = queue.id
    join reveille.partition on partition.id = partition_row.partition
    left join reveille.cursor on cursor.partition = partition_row.partition and cursor.grp = consumer_group.id
    where ($1::text is null or queue.name = $1)
      and consumer_group.settled
      and partition_row.next_seq - 1 > greatest(coalesce(cursor.committed, 0), partition_row.first_seq - 1)
      and cursor.due_at is null
      and partition_row.new_since is null";
