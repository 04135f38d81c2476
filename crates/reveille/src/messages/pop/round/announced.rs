//! Step one: claim where messages are known to be, without a search.
//!
//! By the modes of [`crate::messages::pop::memory`]: announced partitions by name, or any ready
//! partition of a group with a backlog. Nearly every push to a waiting consumer ends here, with one
//! statement.

use std::collections::{HashMap, HashSet};

use tokio::time::Instant;

use super::super::claim::{Claim, Slots, Target};
use super::super::memory::Mode;
use super::super::rows::ClaimRow;
use super::ClaimRound;
use super::report::Unasked;
use crate::messages::error::MessagesError;
use crate::messages::ids::{GroupId, PartitionId, QueueId};
use crate::messages::ready::News;

/// What to claim without a search.
#[derive(Default)]
struct Known {
    /// For claims that want one partition and ack later: the statement for plain queues serves
    /// them.
    single: Slots,
    general: Slots,
    announced: HashMap<GroupId, Announced>,
    announced_queues: HashSet<QueueId>,
}

/// The partitions that were announced to a group and that this round claims.
#[derive(Default)]
struct Announced {
    unclaimed: HashSet<PartitionId>,
    /// More was announced than the round has room for.
    unasked: bool,
    /// More was announced than was remembered.
    forgotten: bool,
}

impl ClaimRound<'_> {
    pub(super) async fn claim_announced(&mut self) -> Result<(), MessagesError> {
        let mut known = self.known_places();
        self.memory.claiming_announced(&known.announced_queues);
        let (single, general) = tokio::join!(
            known.single.claim_plain(self.connection, self.context),
            known.general.claim(self.connection, self.context),
        );
        let (single, general) = (single?, general?);
        self.take(&single).await?;
        self.take(&general).await?;
        known.cross_off(single.iter().chain(&general).map(ClaimRow));
        for (group, announced) in known.announced {
            let all_claimed = announced.unclaimed.is_empty() && !announced.forgotten;
            if all_claimed && self.memory.is_complete(group, self.report.stretch(group)) {
                let unasked = if announced.unasked { Unasked::Some } else { Unasked::None };
                self.report.had_announced_only(group, unasked);
            }
        }
        Ok(())
    }

    fn known_places(&mut self) -> Known {
        let (mut known, now) = (Known::default(), Instant::now());
        for claim in self.claims.iter().filter(|claim| claim.waits()) {
            let [target @ Target { partition: None, queue, group }] = claim.targets[..] else { continue };
            let announced = |most| self.context.notifier.news(queue, group, most);
            match self.memory.mode(target, now) {
                Mode::Announced => known.add_announced(claim, target, announced(claim.demand.slots())),
                // What was announced is among what is ready, or the next search marks it so.
                Mode::Backlog => {
                    announced(usize::MAX);
                    known.slots_of(claim).add_any(claim, group, self.memory.claim_from(group));
                    self.report.read_ready.insert(group);
                }
                // The search finds what was announced as well.
                Mode::Search => _ = announced(usize::MAX),
            }
        }
        known
    }
}

impl Known {
    fn slots_of(&mut self, claim: &Claim) -> &mut Slots {
        let single = claim.demand.slots() == 1 && !claim.demand.auto_ack;
        if single { &mut self.single } else { &mut self.general }
    }

    fn add_announced(&mut self, claim: &Claim, target: Target, news: News) {
        self.announced_queues.insert(target.queue);
        let announced = self.announced.entry(target.group).or_default();
        announced.unclaimed.extend(&news.partitions);
        announced.unasked = news.left;
        announced.forgotten |= !news.whole;
        for partition in news.partitions {
            self.slots_of(claim).add_named(claim, target.group, partition);
        }
    }

    /// Crosses off the partitions that were leased with all that is ready in them: the group is
    /// woken for the rest when their leases end.
    fn cross_off<'r>(&mut self, rows: impl Iterator<Item = ClaimRow<'r>>) {
        for row in rows.filter(|row| row.is_leased() && !row.has_more()) {
            if let Some(announced) = self.announced.get_mut(&row.group()) {
                announced.unclaimed.remove(&row.partition());
            }
        }
    }
}
