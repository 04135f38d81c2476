//! Plays a story twice, in the database and in the model, and compares after every step.

mod compare;
mod consuming;
mod operating;
mod pushing;
mod tending;
mod transacting;

use std::collections::BTreeMap;

use reveille::messages::{Batch, GroupName, Messages, PartitionName, PartitionUid, QueueName};
use reveille_testkit::world::World;

use crate::model::{Check, Model, Rules};
use crate::snapshot::{Eye, Snapshot};
use crate::story::{PARTITIONS, Scope, Step, Story};

/// One history under way.
pub(crate) struct Play<'w> {
    world: &'w World,
    eye: &'w Eye,
    /// Also the name of its namespace and its task.
    name: String,
    queue: QueueName,
    /// How often it was deleted.
    lives: u32,
    model: Model,
    /// The tables after the last step.
    now: Snapshot,
    held: Vec<Held>,
    uids: BTreeMap<u8, PartitionUid>,
    /// Every payload is another one.
    payloads: u32,
}

/// Everything that was ever popped: old leases are used again and again.
#[derive(Debug)]
struct Held {
    batch: Batch,
    group: u8,
    /// Partition and the last sequence of its lease, as the batch has them.
    parts: Vec<(u8, i64)>,
    /// In which life of the queue.
    life: u32,
    /// The node that remembers the batch.
    remembered_by: Option<u8>,
}

/// Play it in a queue of its own, and in the end consume what is left.
pub(crate) async fn play(world: &World, eye: &Eye, name: &str, story: &Story) -> Check {
    let mut play = Play {
        world,
        eye,
        name: name.to_owned(),
        queue: QueueName::new(format!("{name}.{name}")).expect("a name"),
        lives: 0,
        model: Model::new(story.rules),
        now: Snapshot::default(),
        held: Vec::new(),
        uids: BTreeMap::new(),
        payloads: 0,
    };
    play.make_queue(story.rules).await;
    for (at, step) in story.steps.iter().enumerate() {
        let done = play.step(step).await;
        done.map_err(|fault| format!("step {at}, {step:?}: {fault}"))?;
    }
    play.drain().await.map_err(|fault| format!("in the end: {fault}"))
}

impl Play<'_> {
    fn node(&self, node: u8) -> &Messages {
        &self.world.nodes[usize::from(node) % self.world.nodes.len()]
    }

    async fn step(&mut self, step: &Step) -> Check {
        match step {
            Step::Push { node, items } => self.push(*node, items).await?,
            Step::SqlPush { items, commits } => self.sql_push(items, *commits).await?,
            Step::Pop { .. } => return self.pop(step).await.map(|_| ()),
            Step::CompleteAndPop { node, which, batch, partitions } => {
                return self.complete_and_pop(*node, *which, (*batch, *partitions)).await;
            }
            Step::Settle { node, which, how, strict, twice } => {
                self.settle(*node, which, *how, (*strict, *twice)).await?;
            }
            Step::Acknowledge { node, which, results, named, strict } => {
                self.acknowledge(*node, which, results, (*named, *strict)).await?;
            }
            Step::Transaction { .. } => self.transaction(step).await?,
            Step::Release { node, which } => self.release(*node, *which).await?,
            Step::Renew { node, which, strict } => self.renew(*node, *which, *strict).await?,
            Step::Expire { place } => self.expire(*place).await,
            Step::RetriesAreDue => self.wait_out_retries().await,
            Step::Seek { node, group, partition, to } => self.seek(*node, *group, *partition, *to).await?,
            Step::Configure { rules } => self.configure(*rules).await,
            Step::Pause { node, on } => self.pause(*node, *on).await?,
            Step::DeleteGroup { node, group, forget: false } => self.delete_group(*node, *group).await?,
            Step::DeleteGroup { node, group, forget: true } => self.forget_group(*node, *group).await?,
            Step::Purge { node } => self.purge(*node).await?,
            Step::DeleteQueue { node } => self.delete_queue(*node).await?,
            Step::Redrive { node, letters } => self.redrive(*node, *letters).await?,
            Step::DeleteLetters { node, letters } => self.delete_letters(*node, *letters).await?,
            Step::ForgetTransactionIds => self.forget_transaction_ids().await,
            Step::DeleteMessage { partition, seq } => self.delete_message(*partition, *seq).await?,
        }
        self.read_tables().await;
        self.compare()
    }

    /// Reads the tables, and brings into the model's logs what has come from the outbox meanwhile.
    async fn read_tables(&mut self) {
        self.now = Snapshot::of(self.eye, self.queue.as_str()).await;
        let mut waiting: BTreeMap<u8, usize> = BTreeMap::new();
        for (partition, _) in &self.model.outbox {
            *waiting.entry(*partition).or_default() += 1;
        }
        for (partition, count) in waiting {
            let left = self.now.outbox.get(&partition).copied().unwrap_or_default();
            if left < count {
                self.model.receive(partition, count - left);
            }
        }
    }

    /// Leases end, delays pass, no queue is paused: then every group must get all the rest, and
    /// then nothing.
    async fn drain(&mut self) -> Check {
        self.configure(Rules { paused: false, ..self.model.rules }).await;
        self.expire(None).await;
        self.wait_out_retries().await;
        for group in self.model.groups.clone() {
            while self.pop(&rest_of(group)).await? {}
        }
        for (place, cursor) in &self.model.cursors {
            let newest = self.model.newest(place.0);
            if cursor.committed.max(self.model.purged(place.0)) != newest {
                return Err(format!("{place:?} stopped at {} of {newest}", cursor.committed));
            }
        }
        Ok(())
    }
}

fn rest_of(group: u8) -> Step {
    let begin = crate::model::Begin::All;
    let scope = Scope::Queue;
    Step::Pop { node: group, group, scope, batch: 50, partitions: PARTITIONS, auto: true, begin, remember: false }
}

fn partition_name(partition: u8) -> PartitionName {
    PartitionName::new(format!("p{partition}")).expect("a name")
}

fn group_name(group: u8) -> GroupName {
    if group == 0 { GroupName::queue_mode() } else { GroupName::new(format!("g{group}")).expect("a name") }
}

/// Both sides must say the same.
fn agree<T: PartialEq + std::fmt::Debug>(what: &str, actual: &T, expected: &T) -> Check {
    if actual == expected {
        Ok(())
    } else {
        Err(format!("{what}: the database says {actual:?}, the model {expected:?}"))
    }
}
