//! Everything about one queue, as the tables have it.

use std::collections::BTreeMap;

use reveille::messages::{LeaseId, MessageId};
use tokio_postgres::{Client, Statement};
use uuid::Uuid;

use crate::model::{GONE, Letter, Place};

/// When a cursor is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Due {
    #[default]
    Never,
    Now,
    Later,
}

/// A cursor.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Row {
    pub(crate) committed: i64,
    pub(crate) failures: i32,
    pub(crate) deliveries: i32,
    pub(crate) nonce: Option<LeaseId>,
    pub(crate) through: i64,
    pub(crate) leased: bool,
    pub(crate) ended: bool,
    pub(crate) due: Due,
    /// In seconds, the older the smaller.
    pub(crate) due_s: f64,
}

pub(crate) type Rows = BTreeMap<Place, Row>;

#[derive(Debug, Clone, Default)]
pub(crate) struct Snapshot {
    pub(crate) rows: Rows,
    /// The newest sequence of each partition, and whether the partition has new messages.
    pub(crate) partition_rows: BTreeMap<u8, (i64, bool)>,
    /// With the numbers the database gave them.
    pub(crate) letters: Vec<(i64, Letter)>,
    /// How many messages of foreign transactions wait for each partition.
    pub(crate) outbox: BTreeMap<u8, usize>,
}

/// A connection behind the library's back: it reads the tables, and moves times.
#[derive(Debug)]
pub(crate) struct Eye {
    pub(crate) client: Client,
    statements: [Statement; 4],
}

impl Eye {
    pub(crate) async fn open(client: Client) -> Self {
        let mut statements = Vec::new();
        for text in [PARTITION_ROWS, CURSORS, LETTERS, OUTBOX] {
            statements.push(client.prepare(text).await.expect("the tables can be read"));
        }
        Self { client, statements: statements.try_into().expect("four") }
    }

    pub(crate) async fn run(&self, sql: &str) {
        self.client.batch_execute(sql).await.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    }
}

impl Snapshot {
    pub(crate) async fn of(eye: &Eye, queue: &str) -> Self {
        let params: [&(dyn tokio_postgres::types::ToSql + Sync); 1] = [&queue];
        let read = |at: usize| eye.client.query(&eye.statements[at], &params);
        let (partition_rows, cursors, letters, outbox) = tokio::join!(read(0), read(1), read(2), read(3));
        let mut snapshot = Self::default();
        for row in partition_rows.expect("partition rows can be read") {
            snapshot.partition_rows.insert(number(row.get(0)), (row.get(1), row.get(2)));
        }
        for row in cursors.expect("cursors can be read") {
            snapshot.rows.insert((number(row.get(0)), number(row.get(1))), cursor(&row));
        }
        for row in letters.expect("dead letters can be read") {
            snapshot.letters.push((row.get(0), letter(&row)));
        }
        for row in outbox.expect("the outbox can be read") {
            let count: i64 = row.get(1);
            snapshot.outbox.insert(number(row.get(0)), usize::try_from(count).expect("a count"));
        }
        snapshot
    }
}

/// Partitions and groups are numbered by the last letter of their names; the plain queue's group is
/// 0.
fn number(name: &str) -> u8 {
    name.strip_prefix(['p', 'g']).map_or(0, |digits| digits.parse().expect("a number"))
}

fn cursor(row: &tokio_postgres::Row) -> Row {
    let due_s: Option<f64> = row.get(8);
    Row {
        committed: row.get(2),
        failures: row.get(3),
        deliveries: row.get(4),
        nonce: row.get::<_, Option<Uuid>>(5).map(LeaseId),
        through: row.get(6),
        leased: row.get::<_, Option<f64>>(7).is_some(),
        ended: row.get::<_, Option<f64>>(7).is_some_and(|left| left <= 0.0),
        due: match due_s {
            None => Due::Never,
            Some(seconds) if seconds <= 0.0 => Due::Now,
            Some(_) => Due::Later,
        },
        due_s: due_s.unwrap_or_default(),
    }
}

fn letter(row: &tokio_postgres::Row) -> Letter {
    Letter {
        place: (number(row.get(1)), row.get::<_, Option<&str>>(2).map_or(GONE, number)),
        seq: row.get(3),
        message: MessageId(row.get(4)),
        failures: row.get(5),
        deliveries: row.get(6),
        error: row.get(7),
    }
}

const PARTITION_ROWS: &str = "
    select partition.name, partition_row.next_seq - 1, partition_row.new_since is not null
    from reveille.queue
    join reveille.partition on partition.queue = queue.id
    join reveille.partition_row on partition_row.partition = partition.id
    where queue.name = $1";

const CURSORS: &str = "
    select partition.name, consumer_group.name, cursor.committed, cursor.failures, cursor.deliveries, cursor.nonce,
           cursor.leased_through, extract(epoch from cursor.lease_until - clock_timestamp())::float8,
           extract(epoch from cursor.due_at - clock_timestamp())::float8
    from reveille.queue
    join reveille.partition on partition.queue = queue.id
    join reveille.consumer_group on consumer_group.queue = queue.id
    join reveille.cursor on cursor.partition = partition.id and cursor.grp = consumer_group.id
    where queue.name = $1";

const LETTERS: &str = "
    select dead_letter.id, partition.name, consumer_group.name, dead_letter.seq, dead_letter.message_id, dead_letter.failures,
           dead_letter.deliveries, dead_letter.error
    from reveille.queue
    join reveille.dead_letter on dead_letter.queue = queue.id
    join reveille.partition on partition.id = dead_letter.partition
    left join reveille.consumer_group on consumer_group.id = dead_letter.grp
    where queue.name = $1
    order by dead_letter.id";

const OUTBOX: &str = "
    select outbox.partition, count(*)
    from reveille.outbox
    where outbox.queue = $1
    group by outbox.partition";
