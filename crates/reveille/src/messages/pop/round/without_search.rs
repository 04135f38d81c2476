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

/// Where to claim without a search.
#[derive(Default)]
struct KnownPlaces {
    /// Slots of claims that want one partition and ack later: the statement for plain queues serves
    /// them.
    single: Slots,
    /// Slots of all other claims.
    general: Slots,
    /// By group, what was announced to it, if it is in the mode `Announced`.
    announced: HashMap<GroupId, AnnouncedToGroup>,
    announced_queues: HashSet<QueueId>,
}

/// The announced partitions of a group.
#[derive(Default)]
struct AnnouncedToGroup {
    /// Those of this round that have not been claimed whole.
    unclaimed: HashSet<PartitionId>,
    /// There are more than the demands of the round have room for; these stay announced.
    left_some: bool,
    /// There were more than could be remembered: only a search finds these.
    forgot_some: bool,
}

impl ClaimRound<'_> {
    pub(super) async fn claim_without_search(&mut self) -> Result<(), MessagesError> {
        let mut places = self.take_known_places();
        self.memory.claiming_announced(&places.announced_queues);
        let (single, general) = tokio::join!(
            places.single.claim_plain(self.connection, self.context),
            places.general.claim(self.connection, self.context),
        );
        for rows in [&single, &general].into_iter().flatten() {
            self.note_acked(rows);
        }
        let (single, general) = (single?, general?);
        self.take(&single).await?;
        self.take(&general).await?;
        places.cross_off(single.iter().chain(&general).map(ClaimRow));
        self.note_announced_only(places.announced);
        Ok(())
    }

    /// Takes what was announced to each group, whatever its mode: what is not claimed by name is
    /// ready already, or is found by a search.
    fn take_known_places(&mut self) -> KnownPlaces {
        let (mut places, now) = (KnownPlaces::default(), Instant::now());
        for claim in self.claims.iter().filter(|claim| claim.waits()) {
            let [target @ Target { partition: None, queue, group }] = claim.targets[..] else { continue };
            let take_announced = |most| self.context.notifier.take_announced(queue, group, most);
            match self.memory.mode(target, now) {
                Mode::Announced => places.add_announced(claim, target, take_announced(claim.demand.slots())),
                // The announced partitions are ready already, or the next search marks them ready.
                Mode::Backlog => {
                    take_announced(usize::MAX);
                    places.slots_of(claim).add_any(claim, group, self.memory.due_since_for_claim(group));
                    self.report.read_ready.insert(group);
                }
                // The search of this round finds the announced partitions as well.
                Mode::Search => _ = take_announced(usize::MAX),
            }
        }
        places
    }

    /// Reports the groups for which no search is needed: all that was announced was claimed, and
    /// there was nothing else when the stretch of their key began.
    fn note_announced_only(&mut self, groups: HashMap<GroupId, AnnouncedToGroup>) {
        for (group, announced) in groups {
            let all_claimed = announced.unclaimed.is_empty() && !announced.forgot_some;
            if all_claimed && self.memory.is_complete(group, self.report.stretch(group)) {
                let left = if announced.left_some { LeftAnnounced::More } else { LeftAnnounced::Nothing };
                self.report.note_announced_only(group, left);
            }
        }
    }
}

impl KnownPlaces {
    fn slots_of(&mut self, claim: &Claim) -> &mut Slots {
        let single = claim.demand.slots() == 1 && !claim.demand.auto_ack;
        if single { &mut self.single } else { &mut self.general }
    }

    fn add_announced(&mut self, claim: &Claim, target: Target, announced: Announced) {
        self.announced_queues.insert(target.queue);
        let group = self.announced.entry(target.group).or_default();
        group.unclaimed.extend(&announced.partitions);
        // The claims of a group take from one list, so only the last of them knows what is left.
        group.left_some = announced.left_some;
        group.forgot_some |= !announced.forgot_none;
        for partition in announced.partitions {
            self.slots_of(claim).add_named(claim, target.group, partition);
        }
    }

    /// Crosses off the partitions that were leased and have nothing else ready: when their leases
    /// end, the group is woken for the messages that follow.
    fn cross_off<'r>(&mut self, rows: impl Iterator<Item = ClaimRow<'r>>) {
        for row in rows.filter(|row| row.is_leased() && !row.has_more()) {
            if let Some(announced) = self.announced.get_mut(&row.group()) {
                announced.unclaimed.remove(&row.partition());
            }
        }
    }
}
