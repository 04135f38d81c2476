//! Step one of a round: claims where messages are known to be, without a search.
//!
//! The mode of each group ([`crate::messages::pop::memory`]) says where that is: in the partitions
//! that were announced to it, or, for a group with a backlog, in any ready partition. Nearly every
//! push to a waiting consumer is claimed here, by one statement.
//!
//! Next: [`super::ready`], for claims that this step leaves without messages.

use std::collections::{HashMap, HashSet};

use tokio::time::Instant;

use super::super::claim::{Claim, Slots, Target};
use super::super::memory::Mode;
use super::super::rows::ClaimRow;
use super::ClaimRound;
use super::report::LeftAnnounced;
use crate::messages::error::MessagesError;
use crate::messages::ids::{GroupId, PartitionId, QueueId};
use crate::messages::ready::Announced;

/// The slots to claim without a search.
#[derive(Default)]
struct KnownSlots {
    /// For claims that want one partition and ack later: the statement for plain queues serves
    /// them.
    single: Slots,
    general: Slots,
    groups: HashMap<GroupId, AnnouncedToGroup>,
    announced_queues: HashSet<QueueId>,
}

/// The partitions that were announced to a group and that this round claims.
#[derive(Default)]
struct AnnouncedToGroup {
    unclaimed: HashSet<PartitionId>,
    /// More were announced than the round has room for.
    more: bool,
    /// More were announced than were remembered.
    forgotten: bool,
}

impl ClaimRound<'_> {
    pub(super) async fn claim_announced(&mut self) -> Result<(), MessagesError> {
        let mut slots = self.known_slots();
        self.memory.claiming_announced(&slots.announced_queues);
        let (single, general) = tokio::join!(
            slots.single.claim_plain(self.connection, self.context),
            slots.general.claim(self.connection, self.context),
        );
        for rows in [&single, &general].into_iter().flatten() {
            self.note_acked(rows);
        }
        let (single, general) = (single?, general?);
        self.take(&single).await?;
        self.take(&general).await?;
        slots.cross_off(single.iter().chain(&general).map(ClaimRow));
        for (group, announced) in slots.groups {
            let all_claimed = announced.unclaimed.is_empty() && !announced.forgotten;
            if all_claimed && self.memory.is_complete(group, self.report.stretch(group)) {
                let left = if announced.more { LeftAnnounced::Some } else { LeftAnnounced::None };
                self.report.had_announced_only(group, left);
            }
        }
        Ok(())
    }

    fn known_slots(&mut self) -> KnownSlots {
        let (mut slots, now) = (KnownSlots::default(), Instant::now());
        for claim in self.claims.iter().filter(|claim| claim.waits()) {
            let [target @ Target { partition: None, queue, group }] = claim.targets[..] else { continue };
            let take_announced = |most| self.context.notifier.take_announced(queue, group, most);
            match self.memory.mode(target, now) {
                Mode::Announced => slots.add_announced(claim, target, take_announced(claim.demand.slots())),
                // The announced partitions are ready already, or the next search marks them ready.
                Mode::Backlog => {
                    take_announced(usize::MAX);
                    slots.slots_of(claim).add_any(claim, group, self.memory.claim_from(group));
                    self.report.read_ready.insert(group);
                }
                // The search finds the announced partitions as well.
                Mode::Search => _ = take_announced(usize::MAX),
            }
        }
        slots
    }
}

impl KnownSlots {
    fn slots_of(&mut self, claim: &Claim) -> &mut Slots {
        let single = claim.demand.slots() == 1 && !claim.demand.auto_ack;
        if single { &mut self.single } else { &mut self.general }
    }

    fn add_announced(&mut self, claim: &Claim, target: Target, announced: Announced) {
        self.announced_queues.insert(target.queue);
        let group = self.groups.entry(target.group).or_default();
        group.unclaimed.extend(&announced.partitions);
        group.more = announced.more;
        group.forgotten |= !announced.complete;
        for partition in announced.partitions {
            self.slots_of(claim).add_named(claim, target.group, partition);
        }
    }

    /// Crosses off the partitions that were leased and have nothing else ready: when their leases
    /// end, the group is woken for the messages that follow.
    fn cross_off<'r>(&mut self, rows: impl Iterator<Item = ClaimRow<'r>>) {
        for row in rows.filter(|row| row.is_leased() && !row.has_more()) {
            if let Some(announced) = self.groups.get_mut(&row.group()) {
                announced.unclaimed.remove(&row.partition());
            }
        }
    }
}
