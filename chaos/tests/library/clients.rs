//! Many clients at once, and an audit afterwards.
//!
//! Pushers write through the library and by SQL; consumers of three groups complete, fail, retry,
//! bury, release, abandon and come back too late. Each client records its calls and the answers;
//! `audit` checks that these notes can all be true together, and a watcher checks all the time
//! whether a group has messages that no consumer will be woken for.

mod audit;
mod consumer;
mod pusher;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::join_all;
use reveille::messages::{GroupName, LeaseId, MessageId, QueueName};
use reveille_testkit::world::{World, stranded};
use tokio::sync::Notify;
use tokio_postgres::Client;

pub(crate) use audit::Faults;

pub(crate) const PARTITIONS: u8 = 6;
pub(crate) const GROUPS: u8 = 3;
pub(crate) const QUEUE: &str = "chaos";
const CONSUMERS_PER_GROUP: u64 = 2;
const PUSHERS: u64 = 4;
/// A consumer is too late after this.
pub(crate) const LEASE: Duration = Duration::from_millis(250);
/// Consuming what is left takes no longer; what is there then was lost.
const DRAIN: Duration = Duration::from_secs(20);

/// What the clients recorded.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    pub(crate) pushes: Mutex<Vec<PushNote>>,
    pub(crate) leases: Mutex<Vec<LeaseNote>>,
}

/// One push, in the order its pusher made it.
#[derive(Debug, Clone)]
pub(crate) struct PushNote {
    pub(crate) pusher: u64,
    pub(crate) partition: u8,
    pub(crate) id: MessageId,
    /// Its transaction id.
    pub(crate) name: Option<String>,
    pub(crate) fate: Fate,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It is at this place.
    Stored(i64),
    /// It comes to its partition after its transaction's commit, unless its transaction id was
    /// seen.
    Sent,
    /// It must not be anywhere.
    Refused,
}

/// One partition's lease, and how far its holder came according to the answers.
#[derive(Debug, Clone)]
pub(crate) struct LeaseNote {
    pub(crate) lease: LeaseId,
    pub(crate) group: u8,
    pub(crate) partition: u8,
    pub(crate) seqs: Vec<(i64, MessageId)>,
    /// The last sequence that was settled under it according to the answer: completed or dead.
    pub(crate) settled: Option<i64>,
}

impl Notes {
    fn pushed(&self, note: PushNote) {
        self.pushes.lock().unwrap_or_else(PoisonError::into_inner).push(note);
    }

    fn leased(&self, note: LeaseNote) {
        self.leases.lock().unwrap_or_else(PoisonError::into_inner).push(note);
    }
}

/// Runs all clients for a while, or until the watcher has seen enough, drains the queue, and
/// returns what is wrong.
pub(crate) async fn run(world: &World, time: Duration, seed: u64) -> Faults {
    let client = world.db.client().await;
    make_queue(&client).await;
    let notes = Notes::default();
    let (pushing, consuming) = (AtomicBool::new(true), AtomicBool::new(true));
    let seen = Notify::new();
    let watching = watch(world, &consuming, &seen);
    let pushers = join_all((0..PUSHERS).map(|n| pusher::push(world, &notes, &pushing, seed ^ n)));
    let consumers =
        (0..u64::from(GROUPS) * CONSUMERS_PER_GROUP).map(|n| consumer::consume(world, &notes, &consuming, (seed, n)));
    let consumers = join_all(consumers);
    let clock = async {
        let _ = tokio::time::timeout(time, seen.notified()).await;
        pushing.store(false, Ordering::Relaxed);
        let drained = drained(&client).await;
        consuming.store(false, Ordering::Relaxed);
        drained
    };
    let (drained, _, _, (checks, stranded)) = tokio::join!(clock, pushers, consumers, watching);
    let mut faults = audit::audit(&client, &notes).await;
    faults.checks = checks;
    faults.stranded = stranded;
    if !drained {
        faults.list.push("not everything was consumed in time".to_owned());
    }
    faults
}

async fn make_queue(client: &Client) {
    let lease = LEASE.as_millis();
    let make = format!(
        "insert into reveille.queue (name, lease, retry_limit, max_deliveries, retry_delay)
         values ('{QUEUE}', '{lease} milliseconds', 2, 50, '5 milliseconds')"
    );
    client.batch_execute(&make).await.expect("a queue can be made");
    client.batch_execute(KEEP_EPOCHS).await.expect("epochs can be kept");
}

/// Which lease was claimed when: the order of leases as the rows had it, not as the clients saw it.
const KEEP_EPOCHS: &str = "
    create table claimed (partition int, grp int, nonce uuid, epoch bigint);
    create function keep_epoch() returns trigger language plpgsql as $$
    begin
      insert into public.claimed values (new.partition, new.grp, new.nonce, new.epoch);
      return null;
    end $$;
    create trigger keep_epoch after update on reveille.cursor
      for each row when (new.epoch is distinct from old.epoch) execute function keep_epoch();";

/// Until no group has anything left, or it takes too long.
async fn drained(client: &Client) -> bool {
    let left = "
        select (select count(*) from reveille.outbox) + count(*)
        from reveille.consumer_group
        join reveille.partition_row on partition_row.queue = consumer_group.queue
        left join reveille.cursor on cursor.partition = partition_row.partition and cursor.grp = consumer_group.id
        where partition_row.next_seq - 1 > coalesce(cursor.committed, 0)";
    let begun = tokio::time::Instant::now();
    while begun.elapsed() < DRAIN {
        let left: i64 = client.query_one(left, &[]).await.expect("what is left can be counted").get(0);
        if left == 0 {
            return true;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    false
}

/// How often it checked, and the places that it saw stranded.
async fn watch(world: &World, on: &AtomicBool, seen: &Notify) -> (u64, Vec<String>) {
    let client = world.db.client().await;
    let (mut checks, mut places) = (0, Vec::new());
    while on.load(Ordering::Relaxed) {
        places.extend(stranded(&client, Some(QUEUE)).await);
        if !places.is_empty() {
            seen.notify_one();
        }
        checks += 1;
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    (checks, places)
}

fn queue() -> QueueName {
    QueueName::new(QUEUE).expect("a name")
}

fn group_name(group: u8) -> GroupName {
    GroupName::new(format!("g{group}")).expect("a name")
}
