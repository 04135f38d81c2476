//! For consumers that go on: the ack of one batch and the pop of the next in one statement.
//!
//! Saves a round trip and a search, and keeps a consumer at its partitions; so it is bounded: after a few
//! turns the partitions go back to everybody. What cannot be leased on (another queue, a lost lease, nothing there) is
//! acked and popped the long way, with the same answers.
//!
//! Next: [`super::homeless`], for a batch whose consumer has gone meanwhile.

use std::collections::HashSet;
use std::sync::Arc;

use super::claim::fair_share;
use super::homeless::{self, Afloat};
use super::segment::Claimed;
use super::{Place, Pop};
use crate::database::lane::{Failed, Work};
use crate::database::{Connection, DatabaseError, Param};
use crate::messages::Messages;
use crate::messages::error::MessagesError;
use crate::messages::ground::Ground;
use crate::messages::ids::{GroupId, LeaseId, PartitionId};
use crate::messages::message::{Batch, PartitionLease};
use crate::messages::settle::{Settled, Settlement, pass_whole};
use crate::messages::statements::NEXT;

/// How often in a row a consumer may go on before others have their turn.
const TURNS_MAX: u32 = 8;

/// What became of one batch, and the next.
#[derive(Debug)]
pub struct Next {
    /// For each partition of the batch that was done, in its order.
    pub settled: Vec<Result<Settled, MessagesError>>,
    /// The next batch, or `None` when none came in time.
    pub batch: Option<Batch>,
}

impl Messages {
    /// Every message of the batch is done; bring the next. As [`complete`](Messages::complete) and then
    /// [`pop`](Messages::pop), in one statement when the same partitions have more. The batch counts as done even if the
    /// pop fails: its settlement is part of the answer, so that only a pop that fails is an error here.
    pub async fn next(&self, batch: &Batch, pop: Pop) -> Result<Next, MessagesError> {
        let went_on = if goes_on(batch, &pop) { self.parts.popper.go_on(batch, &pop).await } else { None };
        let (acked, next) = went_on.unwrap_or_default();
        let mut settled: Vec<Option<Result<Settled, MessagesError>>> = Vec::with_capacity(batch.partitions.len());
        let mut rest = Vec::new();
        for lease in &batch.partitions {
            if acked.contains(&(lease.partition_id, lease.group_id)) {
                settled.push(Some(Ok(Settled::Done { released: true, dead: false })));
            } else {
                settled.push(None);
                rest.push(Settlement::complete(lease));
            }
        }
        let mut rest = if rest.is_empty() { Vec::new() } else { self.settle(rest).await }.into_iter();
        let fill = |answer: Option<_>| answer.unwrap_or_else(|| rest.next().unwrap_or(Err(MessagesError::Closed)));
        let settled = settled.into_iter().map(fill).collect();
        let batch = match next {
            Some(next) => Some(next),
            None => self.pop(pop).await?,
        };
        Ok(Next { settled, batch })
    }
}

/// Whether the batch's partitions are what the pop would be content with.
fn goes_on(batch: &Batch, pop: &Pop) -> bool {
    let covers = |lease: &PartitionLease| match &pop.place {
        Place::Queue(queue) => *queue == lease.queue,
        Place::Partition(queue, partition) => *queue == lease.queue && *partition == lease.partition,
        // Another queue of the space may be before this one.
        Place::Space { .. } => false,
    };
    batch.lease.is_some()
        && !pop.auto_ack
        && batch.group == pop.group
        && batch.turns < TURNS_MAX
        && batch.partitions.len() <= pop.partitions as usize
        && !batch.partitions.is_empty()
        && batch.partitions.iter().all(covers)
}

type Acked = HashSet<(PartitionId, GroupId)>;

impl super::Popper {
    /// What was acked, and the next batch if there is one at the same place; `None` when nothing can be said, and everything
    /// is to be done the long way.
    async fn go_on(&self, batch: &Batch, pop: &Pop) -> Option<(Acked, Option<Batch>)> {
        let leases = batch.partitions.iter().map(|lease| (lease.partition_id, lease.group_id, lease.through)).collect();
        let going = Going {
            leases,
            lease: batch.lease?,
            next: LeaseId::random(),
            batch: i32::try_from(pop.batch).unwrap_or(i32::MAX),
            interrupted: false,
        };
        let gone_on = self.next.send(vec![going]).await.pop()?.ok()?;
        let (acked, lease, claims) = gone_on.land();
        let next = (!claims.is_empty()).then(|| Batch {
            lease: Some(lease),
            group: batch.group.clone(),
            partitions: claims,
            turns: batch.turns + 1,
        });
        Some((acked, next))
    }
}

/// A consumer that goes on.
#[derive(Debug)]
pub(super) struct Going {
    leases: Vec<(PartitionId, GroupId, i64)>,
    lease: LeaseId,
    next: LeaseId,
    batch: i32,
    /// An attempt was cut off: it may have taken effect.
    interrupted: bool,
}

/// What it got. Dropped before it has landed, it is given back.
#[derive(Debug)]
pub(super) struct GoneOn {
    acked: Acked,
    lease: LeaseId,
    claims: Vec<PartitionLease>,
    /// Something is leased that could not be read.
    unread: bool,
    afloat: Afloat,
}

impl GoneOn {
    fn land(self) -> (Acked, LeaseId, Vec<PartitionLease>) {
        if self.unread {
            // All of it goes back; the long way says what is wrong.
            return (self.acked, self.lease, Vec::new());
        }
        self.afloat.landed_but(Vec::new());
        (self.acked, self.lease, self.claims)
    }
}

/// The work of the lane.
#[derive(Debug)]
pub(super) struct Continuing {
    ground: Arc<Ground>,
}

impl Continuing {
    pub(super) fn new(ground: &Arc<Ground>) -> Self {
        Self { ground: Arc::clone(ground) }
    }
}

impl Work for Continuing {
    type Item = Going;
    type Answer = GoneOn;
    type Error = MessagesError;

    fn weight(item: &Going) -> usize {
        64 * item.leases.len()
    }

    async fn run(&self, connection: &mut Connection, mut items: Vec<Going>) -> Result<Vec<GoneOn>, Failed<Going>> {
        match self.go_on(connection, &items).await {
            Ok(answers) => Ok(answers),
            Err(error) => {
                for item in &mut items {
                    item.interrupted = true;
                }
                Err((error, items))
            }
        }
    }
}

impl Continuing {
    async fn go_on(&self, connection: &Connection, items: &[Going]) -> Result<Vec<GoneOn>, DatabaseError> {
        let mut answers: Vec<GoneOn> = items.iter().map(|item| self.nothing_yet(item)).collect();
        self.learn_interrupted(items, &mut answers).await?;
        let (mut partitions, mut groups, mut nonces, mut throughs) = (vec![], vec![], vec![], vec![]);
        let (mut consumers, mut batches, mut nexts) = (vec![], vec![], vec![]);
        // The same lease twice in one statement would be two rows for one: the second comes to nothing, and is settled.
        let mut seen = HashSet::new();
        for (number, item) in (0_i32..).zip(items).filter(|(_, item)| !item.interrupted) {
            for (partition, group, through) in &item.leases {
                if seen.insert((*partition, *group)) {
                    partitions.push(partition.0);
                    groups.push(group.0);
                    nonces.push(item.lease.0);
                    throughs.push(*through);
                    consumers.push(number);
                    batches.push(item.batch);
                    nexts.push(item.next.0);
                }
            }
        }
        if partitions.is_empty() {
            return Ok(answers);
        }
        let widest = items.iter().map(|item| item.leases.len()).max().unwrap_or(0);
        let bytes_max = fair_share(self.ground.options.pop_bytes_max, widest);
        let params: [Param<'_>; 8] =
            [&partitions, &groups, &nonces, &throughs, &consumers, &batches, &nexts, &bytes_max];
        let rows = connection.query(&NEXT, &params).await?;
        self.read(connection, &rows, &mut answers).await?;
        Ok(answers)
    }

    fn nothing_yet(&self, item: &Going) -> GoneOn {
        let afloat = Afloat::new(&self.ground, vec![item.next.0]);
        GoneOn { acked: HashSet::new(), lease: item.next, claims: Vec::new(), unread: false, afloat }
    }

    /// What an attempt leased before its answer was lost is acked, then, and given back.
    async fn learn_interrupted(&self, items: &[Going], answers: &mut [GoneOn]) -> Result<(), DatabaseError> {
        for (item, answer) in items.iter().zip(answers).filter(|(item, _)| item.interrupted) {
            answer.acked.extend(homeless::abandon(&self.ground, &[item.next.0]).await?);
        }
        Ok(())
    }

    async fn read(
        &self,
        connection: &Connection,
        rows: &[tokio_postgres::Row],
        answers: &mut [GoneOn],
    ) -> Result<(), DatabaseError> {
        let ground = &self.ground;
        let ids: Vec<PartitionId> = rows.iter().map(|row| Claimed(row).partition()).collect();
        let entries = ground.catalog.describe(&ground.database, &ids).await.unwrap_or_default();
        for claimed in rows.iter().map(Claimed) {
            let Some(answer) = answers.get_mut(claimed.consumer()) else { continue };
            answer.acked.insert((claimed.partition(), claimed.group()));
            if claimed.has_more() {
                ground.bell.freed(claimed.queue(), claimed.group(), claimed.partition());
            }
            if !claimed.is_leased() {
                continue;
            }
            let read = entries.get(&claimed.partition()).is_some_and(|entry| {
                claimed.add_to(&mut answer.claims, entry, Some(answer.lease), &ground.seal).is_ok()
            });
            answer.unread |= !read;
        }
        for answer in answers {
            ground.announce_ends(answer.claims.iter());
            self.pass_hollow(connection, answer).await?;
        }
        Ok(())
    }

    /// Leases of nothing but deleted messages are acked here.
    async fn pass_hollow(&self, connection: &Connection, answer: &mut GoneOn) -> Result<(), DatabaseError> {
        let hollow: Vec<PartitionLease> = answer.claims.extract_if(.., |claim| claim.messages.is_empty()).collect();
        pass_whole(connection, &hollow.iter().map(Settlement::complete).collect::<Vec<_>>()).await?;
        for claim in hollow {
            self.ground.bell.freed(claim.queue_id, claim.group_id, claim.partition_id);
        }
        Ok(())
    }
}
