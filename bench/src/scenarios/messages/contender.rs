//! A queue under measurement: ours, pgmq, and one table with a state column.
//!
//! The same loops run on all three. Each caller of a peer has a connection from a small set, as its
//! documentation shows; ours has its batchers. The pushes and acks of all three wait for the disk.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use reveille::database::{Connection, Database, Param, Purpose, Statement};
use reveille::messages::{Batch, GroupName, Messages, PartitionName, Payload, Pop, PushItem, QueueName};
use reveille::uuid::Uuid;
use tokio::sync::Mutex;
use tokio_postgres::types::Type;

/// How long our consumers wait for a message: one that is pushed to a leased partition is free when
/// the consumer acks.
const PATIENCE: Duration = Duration::from_millis(200);
/// The queue of pgmq.
pub(super) const PGMQ_QUEUE: &str = "bench";

static PGMQ_SEND: Statement = Statement {
    name: "bench/pgmq_send",
    sql: "-- Sends a batch.\nselect pgmq.send_batch($1, $2::text[]::jsonb[])",
    types: &[Type::TEXT, Type::TEXT_ARRAY],
};
static PGMQ_READ: Statement = Statement {
    name: "bench/pgmq_read",
    sql: "-- Reads a batch, hidden for a minute.\nselect msg_id, message::text from pgmq.read($1, 60, $2)",
    types: &[Type::TEXT, Type::INT4],
};
static PGMQ_DELETE: Statement = Statement {
    name: "bench/pgmq_delete",
    sql: "-- Deletes what was read.\nselect pgmq.delete($1, $2::bigint[])",
    types: &[Type::TEXT, Type::INT8_ARRAY],
};
static ROW_SEND: Statement = Statement {
    name: "bench/row_send",
    sql: "-- A row for each message.\ninsert into public.bench_row (payload) select unnest($1::bytea[])",
    types: &[Type::BYTEA_ARRAY],
};
static ROW_READ: Statement = Statement {
    name: "bench/row_read",
    // By an array of ids: a join would be planned for a tenth of the table, whatever the limit is.
    sql: "-- Claims the oldest ready rows.
with picked as materialized (
  select id from public.bench_row where state = 0 order by id limit $1 for update skip locked
)
update public.bench_row set state = 1, lease_until = clock_timestamp() + interval '1 minute'
where id = any (array(select id from picked)) returning id, payload",
    types: &[Type::INT4],
};
static ROW_DELETE: Statement = Statement {
    name: "bench/row_delete",
    sql: "-- Done is deleted.\ndelete from public.bench_row where id = any($1::bigint[]) and state = 1 returning id",
    types: &[Type::INT8_ARRAY],
};

/// The plain table with a state column.
pub(super) const ROW_TABLE: &str = "create table bench_row (
       id bigint generated always as identity primary key,
       state smallint not null default 0,
       lease_until timestamptz,
       payload bytea not null
     );
     create index bench_row_ready on bench_row (id) where state = 0";

/// One of the three queues.
pub(super) enum Contender {
    Ours(Ours),
    Pgmq(Pool),
    Rows(Pool),
}

/// Our library on one queue.
pub(super) struct Ours {
    messages: Messages,
    queue: QueueName,
    group: GroupName,
    partitions: Vec<PartitionName>,
    /// Whether every message brings a transaction id, as official clients do.
    keyed: bool,
    body: Payload,
    next: AtomicUsize,
}

/// A few connections for many callers.
pub(super) struct Pool {
    connections: Vec<Mutex<Connection>>,
    json: String,
    body: Vec<u8>,
}

/// What a caller took and has not acked.
pub(super) enum Taken {
    Batch(Option<Batch>),
    Rows(Vec<i64>),
}

/// The body of every message: JSON, because pgmq takes nothing else.
fn body(bytes: usize) -> String {
    format!("{{\"body\":\"{}\"}}", "x".repeat(bytes.saturating_sub(11)))
}

impl Contender {
    /// Stores a batch; it is durable when this returns.
    pub(super) async fn push(&self, caller: usize, batch: usize) -> anyhow::Result<()> {
        match self {
            Self::Ours(ours) => ours.push(batch).await,
            Self::Pgmq(pool) => {
                let bodies = vec![pool.json.as_str(); batch];
                pool.query(caller, &PGMQ_SEND, &[&PGMQ_QUEUE, &bodies]).await.map(drop)
            }
            Self::Rows(pool) => {
                let bodies = vec![pool.body.as_slice(); batch];
                pool.query(caller, &ROW_SEND, &[&bodies]).await.map(drop)
            }
        }
    }

    /// Leases up to a batch.
    pub(super) async fn take(&self, caller: usize, batch: usize) -> anyhow::Result<Taken> {
        let want = i32::try_from(batch)?;
        match self {
            Self::Ours(ours) => Ok(Taken::Batch(ours.pop(batch).await?)),
            Self::Pgmq(pool) => Ok(Taken::Rows(pool.query(caller, &PGMQ_READ, &[&PGMQ_QUEUE, &want]).await?)),
            Self::Rows(pool) => Ok(Taken::Rows(pool.query(caller, &ROW_READ, &[&want]).await?)),
        }
    }

    /// Settles what was taken, and returns how many that were.
    pub(super) async fn ack(&self, caller: usize, taken: Taken) -> anyhow::Result<usize> {
        match (self, taken) {
            (Self::Ours(ours), Taken::Batch(Some(batch))) => {
                for settled in ours.messages.complete(&batch).await {
                    anyhow::ensure!(settled?.holds(), "a lease was lost");
                }
                Ok(batch.len())
            }
            (_, Taken::Rows(ids)) if ids.is_empty() => Ok(0),
            (Self::Pgmq(pool), Taken::Rows(ids)) => {
                Ok(pool.query(caller, &PGMQ_DELETE, &[&PGMQ_QUEUE, &ids]).await?.len())
            }
            (Self::Rows(pool), Taken::Rows(ids)) => Ok(pool.query(caller, &ROW_DELETE, &[&ids]).await?.len()),
            (_, Taken::Batch(_)) | (Self::Ours(_), Taken::Rows(_)) => Ok(0),
        }
    }
}

impl Ours {
    pub(super) fn new(messages: &Messages, queue: &str, partitions: usize, bytes: usize) -> anyhow::Result<Self> {
        let names: Result<_, _> = (0..partitions).map(|n| PartitionName::new(format!("p{n}"))).collect();
        Ok(Self {
            messages: messages.clone(),
            queue: QueueName::new(queue)?,
            group: GroupName::queue_mode(),
            partitions: names?,
            keyed: true,
            body: Payload::new(body(bytes)),
            next: AtomicUsize::new(0),
        })
    }

    pub(super) fn without_keys(mut self) -> Self {
        self.keyed = false;
        self
    }

    /// One call goes to one partition, the next call to the next one.
    async fn push(&self, batch: usize) -> anyhow::Result<()> {
        let partition = &self.partitions[self.next.fetch_add(1, Ordering::Relaxed) % self.partitions.len()];
        self.push_to((0..batch).map(|_| partition)).await
    }

    /// A message for each of the partitions.
    pub(super) async fn push_to<'p>(&self, to: impl Iterator<Item = &'p PartitionName>) -> anyhow::Result<()> {
        let items = to.map(|partition| {
            let item = PushItem::new(self.queue.clone(), self.body.clone()).partition(partition.clone());
            if self.keyed { item.transaction_id(Uuid::now_v7().to_string()) } else { item }
        });
        for pushed in self.messages.push(items.collect()).await {
            anyhow::ensure!(!pushed?.is_duplicate(), "a new id was called a duplicate");
        }
        Ok(())
    }

    pub(super) fn queue_name(&self) -> &str {
        self.queue.as_str()
    }

    pub(super) fn partitions(&self) -> &[PartitionName] {
        &self.partitions
    }

    pub(super) async fn pop(&self, batch: usize) -> anyhow::Result<Option<Batch>> {
        let want = u32::try_from(batch)?;
        let pop = Pop::queue(self.queue.clone()).group(self.group.clone()).batch(want).wait(PATIENCE);
        Ok(self.messages.pop(pop).await?)
    }

    /// Makes groups known, so that pushes are for all of them.
    pub(super) async fn subscribe(&self, groups: usize) -> anyhow::Result<()> {
        for n in 0..groups {
            let group = GroupName::new(format!("group-{n}"))?;
            if let Some(batch) = self.messages.pop(Pop::queue(self.queue.clone()).group(group)).await? {
                self.messages.complete(&batch).await;
            }
        }
        Ok(())
    }
}

impl Pool {
    pub(super) async fn new(database: &Database, connections: usize, bytes: usize) -> anyhow::Result<Self> {
        let mut open = Vec::with_capacity(connections);
        for _ in 0..connections {
            open.push(Mutex::new(database.connection(Purpose::Dedicated("peer")).await?));
        }
        let json = body(bytes);
        Ok(Self { connections: open, body: json.clone().into_bytes(), json })
    }

    /// The numbers in the first column.
    async fn query(&self, caller: usize, statement: &Statement, params: &[Param<'_>]) -> anyhow::Result<Vec<i64>> {
        let connection = self.connections[caller % self.connections.len()].lock().await;
        let rows = connection.query(statement, params).await?;
        rows.iter().map(|row| Ok(row.try_get(0)?)).collect()
    }
}
