//! One pusher: library or SQL, alone or in batches, with transaction ids that repeat.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use fastrand::Rng;
use reveille::messages::{MessageId, PartitionName, PushItem, PushOutcome};
use reveille_testkit::world::World;
use tokio_postgres::Client;
use uuid::Uuid;

use super::{Fate, Notes, PARTITIONS, PushNote, QUEUE, queue};

pub(super) async fn push(world: &World, notes: &Notes, on: &AtomicBool, seed: u64) {
    let mut rng = Rng::with_seed(seed);
    let mut client = world.db.client().await;
    while on.load(Ordering::Relaxed) {
        if rng.u8(0..4) == 0 {
            by_sql(&mut client, notes, &mut rng, seed).await;
        } else {
            by_library(world, notes, &mut rng, seed).await;
        }
        tokio::time::sleep(Duration::from_millis(rng.u64(1..12))).await;
    }
}

async fn by_library(world: &World, notes: &Notes, rng: &mut Rng, pusher: u64) {
    let partitions: Vec<u8> = (0..rng.u8(1..6)).map(|_| rng.u8(0..PARTITIONS)).collect();
    let item = |partition: &u8, name: Option<String>| {
        let made = PushItem::new(queue(), b"{}".to_vec())
            .partition(PartitionName::new(format!("p{partition}")).expect("a name"));
        name.map_or(made.clone(), |name| made.transaction_id(name))
    };
    let names: Vec<Option<String>> = partitions.iter().map(|_| name(rng)).collect();
    let items = partitions.iter().zip(&names).map(|(partition, name)| item(partition, name.clone())).collect();
    let answers = world.nodes[rng.usize(0..world.nodes.len())].push(items).await;
    for ((partition, name), answer) in partitions.into_iter().zip(names).zip(answers) {
        let answer = answer.expect("a push succeeds");
        let fate = match answer.outcome {
            PushOutcome::Stored { seq } => Fate::Stored(seq),
            PushOutcome::Duplicate { .. } => continue,
            other => panic!("a push was answered {other:?}"),
        };
        notes.pushed(PushNote { pusher, partition, id: answer.id, name, fate });
    }
}

/// A foreign transaction that takes its time, and does not always commit.
async fn by_sql(client: &mut Client, notes: &Notes, rng: &mut Rng, pusher: u64) {
    let transaction = client.transaction().await.expect("a transaction begins");
    let mut made = Vec::new();
    for _ in 0..rng.u8(1..4) {
        let (partition, name) = (rng.u8(0..PARTITIONS), name(rng));
        let push = "select reveille.push($1::text, '{}'::bytea, $2::text, $3::text)";
        let row = transaction.query_one(push, &[&QUEUE, &format!("p{partition}"), &name]).await;
        let id: Uuid = row.expect("a push by SQL succeeds").get(0);
        made.push((partition, MessageId(id), name));
    }
    tokio::time::sleep(Duration::from_millis(rng.u64(0..20))).await;
    let commits = rng.u8(0..5) > 0;
    if commits {
        transaction.commit().await.expect("it commits");
    } else {
        transaction.rollback().await.expect("it rolls back");
    }
    let fate = if commits { Fate::Sent } else { Fate::Refused };
    for (partition, id, name) in made {
        notes.pushed(PushNote { pusher, partition, id, name, fate });
    }
}

/// One of few enough that they repeat.
fn name(rng: &mut Rng) -> Option<String> {
    (rng.u8(0..3) == 0).then(|| format!("order {}", rng.u16(0..300)))
}
