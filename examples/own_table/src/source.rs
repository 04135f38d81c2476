//! Claims rows of the table for a dispatcher.

use std::collections::BTreeMap;
use std::time::Duration;

use reveille::database::{Connection, Database, DatabaseError, Param, Purpose, Statement};
use reveille_wake::{Round, RoundFailed, RoundResult, Source};
use tokio::sync::Mutex;
use tokio_postgres::types::Type;

/// A claimed row, which is ours until its lease ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Taken {
    /// The row.
    pub id: i64,
    /// Its queue.
    pub queue: String,
    /// Which claim of it this is.
    pub epoch: i64,
}

/// The queue as a dispatcher sees it.
#[derive(Debug)]
pub struct Todo {
    database: Database,
    connection: Mutex<Option<Connection>>,
    lease: Duration,
}

static CLAIM: Statement = Statement {
    name: "own_table/claim",
    sql: "-- Claims up to $2 due rows of each queue $1, for $3 seconds. A claim that is lost in a crash is only made again,
-- so it does not wait for the disk.
with wanted as (
  select queue, want from unnest($1, $2) as wanted (queue, want)
  where set_config('synchronous_commit', 'off', true) is not null
), picked as materialized (
  select todo.id
  from wanted
  cross join lateral (
    select id from public.todo
    where todo.queue = wanted.queue and due_at <= clock_timestamp()
    order by due_at, id limit want for update skip locked
  ) as todo
)
update public.todo
set due_at = clock_timestamp() + make_interval(secs => $3), epoch = epoch + 1
from picked
where todo.id = picked.id
returning todo.id, todo.queue, todo.epoch",
    types: &[Type::TEXT_ARRAY, Type::INT4_ARRAY, Type::FLOAT8],
};

static NEXT_DUE: Statement = Statement {
    name: "own_table/next_due",
    sql: "-- The next due time of each queue $1.
select wanted.queue, extract(epoch from next.due_at - clock_timestamp())::float8
from unnest($1) as wanted (queue)
cross join lateral (select due_at from public.todo where queue = wanted.queue order by due_at limit 1) as next",
    types: &[Type::TEXT_ARRAY],
};

static RELEASE: Statement = Statement {
    name: "own_table/release",
    sql: "-- Gives rows $1 back.
update public.todo set due_at = clock_timestamp() from unnest($1, $2) as given (id, epoch)
where todo.id = given.id and todo.epoch = given.epoch",
    types: &[Type::INT8_ARRAY, Type::INT8_ARRAY],
};

impl Todo {
    /// Claims for `lease`, on a connection of its own.
    pub fn new(database: Database, lease: Duration) -> Self {
        Self { database, connection: Mutex::new(None), lease }
    }

    async fn claim(&self, wants: &BTreeMap<String, i32>) -> Result<(Vec<Taken>, Vec<(String, f64)>), DatabaseError> {
        let mut connection = self.connection.lock().await;
        let usable = connection.take().filter(|connection| !connection.is_closed());
        let open = match usable {
            Some(open) => open,
            None => self.database.connection(Purpose::Dedicated("claim")).await?,
        };
        let queues: Vec<&str> = wants.keys().map(String::as_str).collect();
        let counts: Vec<i32> = wants.values().copied().collect();
        let lease_s = self.lease.as_secs_f64();
        let claim: [Param<'_>; 3] = [&queues, &counts, &lease_s];
        let named: [Param<'_>; 1] = [&queues];
        // Both are sent at once and run in order: the due times are those after the claim.
        let (rows, dues) = tokio::try_join!(open.query(&CLAIM, &claim), open.query(&NEXT_DUE, &named))?;
        let taken = rows.iter().map(|row| Taken { id: row.get(0), queue: row.get(1), epoch: row.get(2) }).collect();
        let dues = dues.iter().map(|row| (row.get(0), row.get(1))).collect();
        *connection = Some(open);
        Ok((taken, dues))
    }
}

impl Source for Todo {
    type Key = String;
    type Request = ();
    type Lease = Taken;

    async fn claim(&self, round: Round<String, ()>) -> Result<RoundResult<String, Taken>, RoundFailed> {
        let mut wants: BTreeMap<String, i32> = round.keys.iter().map(|woken| (woken.key.clone(), 0)).collect();
        for demand in &round.demands {
            if let Some(want) = wants.get_mut(&demand.keys[0]) {
                *want += 1;
            }
        }
        let (taken, dues) = self.claim(&wants).await.map_err(|_| RoundFailed)?;
        let mut result = RoundResult::default();
        for queue in wants.keys() {
            let filled = taken.iter().filter(|row| row.queue == *queue).count();
            if wants[queue] > 0 && usize::try_from(wants[queue]) == Ok(filled) {
                result.more.push(queue.clone());
            }
        }
        let mut demands = round.demands;
        for row in taken {
            if let Some(position) = demands.iter().position(|demand| demand.keys[0] == row.queue) {
                result.leases.push((demands.remove(position).id, row));
            }
        }
        for (queue, due_s) in dues {
            match Duration::try_from_secs_f64(due_s) {
                Ok(delay) if !delay.is_zero() => result.dues.push((queue, delay)),
                // Ready, and yet not claimed: another claim of it is about to commit.
                _ if !result.more.contains(&queue) => result.contended.push(queue),
                _ => {}
            }
        }
        Ok(result)
    }

    async fn release(&self, leases: Vec<Taken>) {
        let (ids, epochs): (Vec<i64>, Vec<i64>) = leases.iter().map(|taken| (taken.id, taken.epoch)).unzip();
        if let Ok(connection) = self.database.acquire().await {
            let _ = connection.execute(&RELEASE, &[&ids, &epochs]).await;
        }
    }
}
