//! What earlier claim rounds showed, and so how the next round claims for each group.
//!
//! A search is certain and costs most: it marks new partitions ready, claims ready ones and reads
//! the next due time. This memory says when a round may do with less. A queue is *plain* if it
//! neither delays nor expires messages. Each group is in one of three modes:
//!
//! ```text
//! mode       the round claims        entered after a round that     left after a round that
//! ---------  ----------------------  -----------------------------  ----------------------------
//! Search     by a search             found the queue not plain;     found the queue plain: to one
//!                                    or nothing is known yet        of the others, as below
//! Announced  announced partitions,   read no ready partitions, or   may have left some ready: to
//!            by name                 left none, in a plain queue    Backlog; or a search is due
//! Backlog    any ready partition;    read ready partitions and may  left none: to Announced; or a
//!            it marks none ready     have left some, in a plain     search is due
//!                                    queue
//! ```
//!
//! A round *may have left* some also when every demand was served: then it did not read what else
//! is ready.
//!
//! A search is due in `Backlog` when the queue's last search is 100 ms old: new partitions must not
//! starve behind those that are ready already. It is due in `Announced` when the last search is 100
//! ms old and 16 rounds did without: what became ready unannounced must not starve behind
//! announcements. A search that is due is one round in the mode `Search`, after which the table
//! applies again.
//!
//! Demands that a round in `Announced` or `Backlog` leaves without messages are searched for in the
//! same round. The one exception is what makes a push to a waiting consumer cost one statement: in
//! `Announced`, if every announced partition was claimed whole, and the last search was
//! **complete** as of the key's current stretch, then there is nothing else to find. A stretch of a
//! key is the time between two wake-ups that did not name a partition; the hub numbers stretches,
//! and no number is used twice, so nothing here has to be reset when one ends.
//!
//! All of it may be forgotten at any time: a group that is not in memory is searched.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, SystemTime};

use reveille_wake::Stretch;
use tokio::time::Instant;

use super::claim::Target;
use super::low_water::{Effort, LowWater};
use crate::messages::ids::{GroupId, QueueId};

/// How old the last search of a queue may be before another is due.
const SEARCH_EVERY: Duration = Duration::from_millis(100);
/// How many rounds may claim announced partitions only before a search is due.
const ROUNDS_WITHOUT_SEARCH_MAX: u32 = 16;
/// More groups, and more queues, than this are forgotten all at once.
const REMEMBERED_MAX: usize = 50_000;

/// How a round claims for a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Mode {
    #[default]
    Search,
    Announced,
    Backlog,
}

#[derive(Debug, Default)]
pub(super) struct Memory {
    groups: HashMap<GroupId, Group>,
    searches: HashMap<QueueId, LastSearch>,
    /// From which due time on each group is searched.
    low_water: LowWater,
}

#[derive(Debug, Default, Clone, Copy)]
struct Group {
    mode: Mode,
    /// The stretch as of which a search found everything there was.
    complete_in: Option<Stretch>,
}

#[derive(Debug, Clone, Copy)]
struct LastSearch {
    at: Instant,
    rounds_since: u32,
}

/// What one round showed of a group.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shown {
    /// Whether its queue is plain, if the round asked.
    pub(super) plain: Option<bool>,
    /// The round read what is ready, and may have left some of it unclaimed.
    pub(super) may_have_left_ready: bool,
    /// The stretch as of which the round found everything there was, if it searched.
    pub(super) complete_in: Option<Stretch>,
}

impl Memory {
    pub(super) fn mode(&self, target: Target, now: Instant) -> Mode {
        let mode = self.groups.get(&target.group).map_or(Mode::Search, |group| group.mode);
        let Some(last) = self.searches.get(&target.queue) else { return Mode::Search };
        let old = now.duration_since(last.at) >= SEARCH_EVERY;
        let search_is_due = match mode {
            Mode::Search => true,
            Mode::Backlog => old,
            Mode::Announced => old && last.rounds_since >= ROUNDS_WITHOUT_SEARCH_MAX,
        };
        if search_is_due { Mode::Search } else { mode }
    }

    /// Whether everything about the group was known when this stretch of its key began.
    pub(super) fn is_complete(&self, group: GroupId, stretch: Option<Stretch>) -> bool {
        let complete_in = self.groups.get(&group).and_then(|group| group.complete_in);
        stretch.is_some() && stretch == complete_in
    }

    /// These queues are about to be searched.
    pub(super) fn searching(&mut self, queues: &[QueueId], now: Instant) {
        if self.searches.len() > REMEMBERED_MAX {
            self.searches.clear();
        }
        self.searches.extend(queues.iter().map(|queue| (*queue, LastSearch { at: now, rounds_since: 0 })));
    }

    /// A round claims announced partitions of these queues only.
    pub(super) fn claiming_announced(&mut self, queues: &HashSet<QueueId>) {
        for queue in queues {
            if let Some(last) = self.searches.get_mut(queue) {
                last.rounds_since += 1;
            }
        }
    }

    /// A round has ended.
    pub(super) fn learn(&mut self, group: GroupId, shown: Shown) {
        if self.groups.len() > REMEMBERED_MAX {
            self.groups.clear();
        }
        let group = self.groups.entry(group).or_default();
        let plain = shown.plain.unwrap_or(group.mode != Mode::Search);
        group.mode = match (plain, shown.may_have_left_ready) {
            (false, _) => Mode::Search,
            (true, true) => Mode::Backlog,
            (true, false) => Mode::Announced,
        };
        group.complete_in = shown.complete_in.or(group.complete_in);
    }

    /// From which due time on a search reads that also asks for the next due time.
    pub(super) fn due_since_for_search(&self, group: GroupId) -> SystemTime {
        self.low_water.due_since_for_search(group, std::time::Instant::now())
    }

    /// From which due time on a claim reads that asks for nothing else.
    pub(super) fn due_since_for_claim(&self, group: GroupId) -> SystemTime {
        self.low_water.due_since_for_claim(group)
    }

    /// How long until a search must read from the start.
    pub(super) fn full_search_in(&self, group: GroupId) -> Duration {
        self.low_water.full_search_in(group, std::time::Instant::now())
    }

    /// A search from the start cost this much, and nothing is left that is due before
    /// `empty_before`.
    pub(super) fn searched_from_start(&mut self, group: GroupId, effort: Effort, empty_before: SystemTime) {
        self.low_water.searched_from_start(group, std::time::Instant::now(), effort, empty_before);
    }
}

#[cfg(test)]
mod tests;
