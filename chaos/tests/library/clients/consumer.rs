//! One very unreliable consumer.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use fastrand::Rng;
use reveille::messages::{Acknowledgement, Batch, Messages, Outcome, PartitionLease, Pop, Settled, Settlement};
use reveille_testkit::world::World;

use super::{GROUPS, LEASE, LeaseNote, Notes, group_name, queue};

pub(super) async fn consume(world: &World, notes: &Notes, on: &AtomicBool, (seed, number): (u64, u64)) {
    let mut rng = Rng::with_seed(seed ^ (number + 64));
    let group = u8::try_from(number % u64::from(GROUPS)).expect("small");
    let mut next: Option<Batch> = None;
    while on.load(Ordering::Relaxed) || next.is_some() {
        let node = &world.nodes[rng.usize(0..world.nodes.len())];
        let batch = match next.take() {
            Some(batch) => Some(batch),
            None => node.pop(pop(group, &mut rng)).await.expect("a pop succeeds"),
        };
        let Some(batch) = batch else { continue };
        let mut leases: Vec<LeaseNote> = batch.partitions.iter().map(|lease| note(&batch, lease, group)).collect();
        let on = on.load(Ordering::Relaxed);
        next = treat(node, &batch, &mut leases, (group, on), &mut rng).await;
        for lease in leases {
            notes.leased(lease);
        }
    }
}

fn pop(group: u8, rng: &mut Rng) -> Pop {
    let pop = Pop::queue(queue()).group(group_name(group)).wait(Duration::from_millis(100));
    pop.batch(rng.u32(1..20)).partitions(rng.u32(1..4))
}

fn note(batch: &Batch, lease: &PartitionLease, group: u8) -> LeaseNote {
    LeaseNote {
        lease: batch.lease.expect("nothing here is acked by being popped"),
        group,
        partition: lease.partition.as_str()[1..].parse().expect("a number"),
        seqs: lease.messages.iter().map(|message| (message.seq, message.id)).collect(),
        settled: None,
    }
}

/// Does something with a batch, and records what was settled by it. Returns the next batch, if that
/// came with it.
async fn treat(
    node: &Messages,
    batch: &Batch,
    leases: &mut [LeaseNote],
    (group, on): (u8, bool),
    rng: &mut Rng,
) -> Option<Batch> {
    match rng.u8(0..100) {
        0..35 => complete(node, batch, leases).await,
        35..55 => return go_on(node, batch, leases, (group, on), rng).await,
        55..63 => stop(node, batch, leases, rng).await,
        63..70 => partly(node, batch, leases, rng).await,
        70..78 => by_id(node, batch, leases, (group, rng)).await,
        78..82 => {
            let released = batch.partitions.iter().map(|lease| (Settlement::release(lease), None));
            settle(node, leases, released.collect()).await;
        }
        82..86 => {
            let renewed = node.renew(batch.lease.expect("leased"), None).await.expect("a renewal is answered");
            tokio::time::sleep(LEASE / 2).await;
            if renewed.is_some() {
                complete(node, batch, leases).await;
            }
        }
        86..92 => {} // gone without an answer
        _ => {
            // Asleep until another consumer may have it: the settlement counts only if none has.
            tokio::time::sleep(LEASE + Duration::from_millis(rng.u64(0..150))).await;
            if rng.bool() {
                complete(node, batch, leases).await;
            } else {
                stop(node, batch, leases, rng).await;
            }
        }
    }
    None
}

async fn complete(node: &Messages, batch: &Batch, leases: &mut [LeaseNote]) {
    let whole = batch.partitions.iter().map(|lease| (Settlement::complete(lease), last(lease))).collect();
    settle(node, leases, whole).await;
}

/// In the middle: the messages before are done, and perhaps the one that stopped is dead.
async fn stop(node: &Messages, batch: &Batch, leases: &mut [LeaseNote], rng: &mut Rng) {
    let mut settlements = Vec::new();
    for lease in &batch.partitions {
        let seq = lease.messages[rng.usize(0..lease.messages.len())].seq;
        let settlement = match rng.u8(0..3) {
            0 => Settlement::retry(lease, seq),
            1 => Settlement::fail(lease, seq, "no luck"),
            _ => Settlement::dead(lease, seq, "hopeless"),
        };
        settlements.push((settlement, Some(seq - 1)));
    }
    settle(node, leases, settlements).await;
}

async fn partly(node: &Messages, batch: &Batch, leases: &mut [LeaseNote], rng: &mut Rng) {
    let settlements = batch.partitions.iter().map(|lease| {
        let seq = lease.messages[rng.usize(0..lease.messages.len())].seq;
        (Settlement::complete_through(lease, seq), Some(seq))
    });
    settle(node, leases, settlements.collect()).await;
    if rng.bool() {
        complete(node, batch, leases).await;
    }
}

/// `through` is what is settled if the answer is yes, the dead letter not counted.
async fn settle(node: &Messages, leases: &mut [LeaseNote], settlements: Vec<(Settlement, Option<i64>)>) {
    let (settlements, throughs): (Vec<_>, Vec<_>) = settlements.into_iter().unzip();
    let answers = node.settle(settlements).await;
    for ((lease, answer), through) in leases.iter_mut().zip(answers).zip(throughs) {
        record(lease, answer.expect("a settlement is answered"), through);
    }
}

fn record(lease: &mut LeaseNote, answer: Settled, through: Option<i64>) {
    if let (Settled::Done { dead, .. }, Some(through)) = (answer, through) {
        lease.settled = lease.settled.max(Some(through + i64::from(dead)));
    }
}

fn last(lease: &PartitionLease) -> Option<i64> {
    lease.messages.last().map(|message| message.seq)
}

async fn go_on(
    node: &Messages,
    batch: &Batch,
    leases: &mut [LeaseNote],
    (group, on): (u8, bool),
    rng: &mut Rng,
) -> Option<Batch> {
    if !on {
        complete(node, batch, leases).await;
        return None;
    }
    complete(node, batch, leases).await;
    node.pop(pop(group, rng).partitions(4)).await.expect("the next pop succeeds")
}

/// By transaction id: all completed but perhaps one.
async fn by_id(node: &Messages, batch: &Batch, leases: &mut [LeaseNote], (group, rng): (u8, &mut Rng)) {
    if rng.bool() {
        node.remember(batch);
    }
    let (of, lease) = (&batch.partitions[0], &mut leases[0]);
    let bad = rng.bool().then(|| rng.usize(0..of.messages.len()));
    let ack = |at: usize| {
        let message = &of.messages[at];
        let outcome = if bad == Some(at) { Outcome::Failed } else { Outcome::Completed };
        let named = Acknowledgement::new(of.partition_uid, message.transaction_id.clone()).lease(lease.lease);
        named.group(group_name(group)).outcome(outcome)
    };
    let answers = node.acknowledge((0..of.messages.len()).map(ack).collect()).await;
    for (at, (message, answer)) in of.messages.iter().zip(answers).enumerate() {
        let through = if bad == Some(at) { message.seq - 1 } else { message.seq };
        record(lease, answer.expect("an acknowledgement is answered"), Some(through));
    }
}
