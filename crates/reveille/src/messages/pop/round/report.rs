//! What a look learnt, and what that means for each key.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use reveille_wake::{Looked, RungKey, Stretch};

use crate::messages::ids::{GroupId, QueueId};
use crate::messages::key::Key;
use crate::messages::pop::request::{Found, Spot, Wish};

/// What the database said of a spot after the claims.
#[derive(Debug, Clone, Copy)]
pub(super) struct Next {
    /// The group is still there.
    pub(super) known: bool,
    /// Seconds until something can be claimed; not positive for what can be now.
    pub(super) due_s: Option<f64>,
    /// Its queue neither delays nor drops.
    pub(super) plain: bool,
}

#[derive(Debug, Default)]
pub(super) struct Report {
    /// In which stretch of their keys the groups are looked at.
    stretches: HashMap<GroupId, Stretch>,
    /// Groups of which everything is known but what they were told by place, all of which was claimed; and whether they were
    /// told of more than there was room for.
    followed: HashMap<GroupId, bool>,
    next: HashMap<Spot, Next>,
    /// Names that mean something else now.
    pub(super) changed: HashSet<Key>,
    /// Groups some of whose cursors moved on without giving anybody a message.
    passed: HashSet<GroupId>,
    /// Groups that were searched by what is due, and not only asked for partitions known by name.
    pub(super) searched: HashSet<GroupId>,
    /// Queues of which more is fresh than one look spreads.
    pub(super) fresh: HashSet<QueueId>,
    /// Spots that were due and that the look had no time for.
    pub(super) untried: HashSet<Spot>,
}

impl Report {
    pub(super) fn of(keys: &[RungKey<Key>]) -> Self {
        let any = keys.iter().filter_map(|rung| Some((Spot::of(&rung.key)?, rung.stretch?)));
        let any = any.filter(|(spot, _)| spot.partition.is_none());
        Self { stretches: any.map(|(spot, stretch)| (spot.group, stretch)).collect(), ..Self::default() }
    }

    pub(super) fn stretch(&self, group: GroupId) -> Option<Stretch> {
        self.stretches.get(&group).copied()
    }

    /// There is nothing for the group but what it was told, and that was claimed.
    pub(super) fn follow(&mut self, group: GroupId, left: bool) {
        if !self.passed.contains(&group) {
            self.followed.insert(group, left);
        }
    }

    /// Whether a search may find something for the wish.
    pub(super) fn seeks(&self, wish: &Wish) -> bool {
        let [spot] = wish.spots[..] else { return wish.is_open() };
        wish.is_open() && self.followed(spot).is_none()
    }

    fn followed(&self, spot: Spot) -> Option<bool> {
        let followed = self.followed.get(&spot.group).filter(|_| spot.partition.is_none());
        followed.copied().filter(|_| !self.next.contains_key(&spot))
    }

    /// Groups of which this look, if it leaves nothing behind, knows everything as of their stretches.
    pub(super) fn surveyed(&self) -> impl Iterator<Item = (GroupId, Stretch)> {
        let asked = self.next.keys().filter(|spot| spot.partition.is_none());
        asked.filter_map(|spot| Some((spot.group, self.stretch(spot.group)?)))
    }

    pub(super) fn learn(&mut self, spot: Spot, next: Next) {
        self.next.insert(spot, next);
    }

    pub(super) fn passed(&mut self, group: GroupId) {
        self.passed.insert(group);
    }

    /// What was passed until now has been followed up.
    pub(super) fn begin_search(&mut self) {
        self.passed.clear();
    }

    /// What was passed until now; the caller says it again.
    pub(super) fn take_passed(&mut self) -> HashSet<GroupId> {
        std::mem::take(&mut self.passed)
    }

    pub(super) fn passes(&self, spot: Spot) -> bool {
        self.passed.contains(&spot.group)
    }

    pub(super) fn has_passed(&self) -> bool {
        !self.passed.is_empty()
    }

    pub(super) fn is_due(&self, spot: Spot) -> bool {
        self.next.get(&spot).is_some_and(|next| next.due_s.is_some_and(|due_s| due_s <= 0.0))
    }

    /// Whether the group's queue is plain, if that was learnt.
    pub(super) fn is_plain(&self, spot: Spot) -> Option<bool> {
        self.next.get(&spot).map(|next| next.known && next.plain)
    }

    /// Groups that are no more.
    pub(super) fn gone(&self) -> Vec<GroupId> {
        self.next.iter().filter(|(_, next)| !next.known).map(|(spot, _)| spot.group).collect()
    }

    pub(super) fn looked(&self, called: &HashSet<&Key>, mut wishes: Vec<Wish>) -> Looked<Key, Found> {
        // Whoever found no room in this look must be told too, and nobody may take such a key for one that has nothing.
        let mut looked = Looked { more: self.changed.iter().cloned().collect(), ..Looked::default() };
        let mut hungry: HashSet<Spot> = HashSet::new();
        for wish in wishes.iter_mut().filter(|wish| wish.is_open()) {
            hungry.extend(&wish.spots);
            wish.again = wish.spots.iter().any(|spot| self.next.get(spot).is_some_and(|next| !next.known));
        }
        for spot in called.iter().filter_map(|key| Spot::of(key)) {
            if let Some(left) = self.followed(spot) {
                looked.followed.push(spot.key());
                looked.more.extend(left.then(|| spot.key()));
                continue;
            }
            let next = self.next.get(&spot);
            let due_s = next.filter(|next| next.known).and_then(|next| next.due_s);
            let gone = next.is_some_and(|next| !next.known);
            let again =
                gone || !hungry.contains(&spot) || self.untried.contains(&spot) || self.fresh.contains(&spot.queue);
            match due_s {
                _ if again => looked.more.push(spot.key()),
                Some(due_s) if due_s <= 0.0 && self.passed.contains(&spot.group) => looked.more.push(spot.key()),
                // It is due, and yet it was not ours to take: somebody holds it just now.
                Some(due_s) if due_s <= 0.0 => looked.contended.push(spot.key()),
                Some(due_s) => looked.dues.extend(delay(due_s).map(|delay| (spot.key(), delay))),
                None => {}
            }
        }
        looked.leases = wishes.into_iter().filter_map(Wish::found).collect();
        looked
    }
}

/// A due further away than can be slept for is none.
fn delay(seconds: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(seconds).ok()
}
