//! Step four of a round: reports what it showed of each key.
//!
//! Owns what the other steps note. The dispatcher gets four lists: keys that may have more, keys
//! that are contended, due times, and keys for which only the announced partitions were claimed. A
//! key in none of these lists has nothing to claim. The memory gets what later rounds need to
//! choose a mode for each group.
//!
//! Next: [`reveille_wake::Dispatcher`], which hands out the leases.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::time::Duration;

use reveille_wake::{RoundResult, Stretch, WokenKey};

use super::super::claim::{Claim, Target};
use super::super::memory::{Memory, Shown};
use super::reach::NextDue;
use crate::messages::ids::{GroupId, QueueId};
use crate::messages::key::Key;

#[derive(Debug, Default)]
pub(super) struct Report {
    /// The current stretch of each group's key.
    stretches: HashMap<GroupId, Stretch>,
    /// Names that mean something else now.
    pub(super) names_changed: HashSet<Key>,
    /// Groups that have nothing but announced partitions, all of which were claimed as far as there
    /// was room.
    announced_only: HashMap<GroupId, LeftAnnounced>,
    /// Groups of which the round read all ready partitions, and did not only claim by name.
    pub(super) read_ready: HashSet<GroupId>,
    /// Groups with cursors that moved past messages no consumer gets: deleted, expired or dead.
    passed: HashSet<GroupId>,
    /// When each target is due next, read after the claims.
    next: HashMap<Target, NextDue>,
    /// Queues that have more new partitions than one round marks ready.
    pub(super) more_to_mark: HashSet<QueueId>,
    /// Targets that were ready, and where the round did not claim.
    pub(super) untried: HashSet<Target>,
}

/// Whether announced partitions are left for which no demand of the round had room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LeftAnnounced {
    None,
    Some,
}

impl Report {
    pub(super) fn of(keys: &[WokenKey<Key>]) -> Self {
        let any = keys.iter().filter_map(|woken| Some((Target::of(&woken.key)?, woken.stretch?)));
        let any = any.filter(|(target, _)| target.is_any_partition());
        Self { stretches: any.map(|(target, stretch)| (target.group, stretch)).collect(), ..Self::default() }
    }

    pub(super) fn stretch(&self, group: GroupId) -> Option<Stretch> {
        self.stretches.get(&group).copied()
    }

    /// The group has nothing but announced partitions, and these were claimed. Not so if a cursor
    /// only moved on: there may be a message behind those that it passed, and a search must find
    /// it.
    pub(super) fn had_announced_only(&mut self, group: GroupId, left: LeftAnnounced) {
        if !self.passed.contains(&group) {
            self.announced_only.insert(group, left);
        }
    }

    fn announced_only(&self, target: Target) -> Option<LeftAnnounced> {
        let left = self.announced_only.get(&target.group).copied();
        left.filter(|_| target.is_any_partition() && !self.next.contains_key(&target))
    }

    /// Whether a search may find something for the claim.
    pub(super) fn may_find(&self, claim: &Claim) -> bool {
        match claim.targets[..] {
            [target] => claim.waits() && self.announced_only(target).is_none(),
            _ => claim.waits(),
        }
    }

    /// Notes when targets are due next. Returns the queues whose outbox must be moved into the log
    /// before a claim that still waits may be reported empty.
    pub(super) fn note_next_due(&mut self, claims: &[Claim], next: Vec<NextDue>) -> Vec<String> {
        let open_targets = claims.iter().filter(|claim| claim.waits()).flat_map(|claim| &claim.targets);
        let open_queues: HashSet<QueueId> = open_targets.map(|target| target.queue).collect();
        let mut outboxes = BTreeSet::new();
        for mut next in next {
            outboxes.extend(next.outbox.take().filter(|_| open_queues.contains(&next.target.queue)));
            self.next.insert(next.target, next);
        }
        outboxes.into_iter().collect()
    }

    pub(super) fn note_passed(&mut self, groups: &HashSet<GroupId>) {
        self.passed.extend(groups);
    }

    pub(super) fn has_passed(&self) -> bool {
        !self.passed.is_empty()
    }

    pub(super) fn forget_passed(&mut self) {
        self.passed.clear();
    }

    fn passes(&self, target: Target) -> bool {
        self.passed.contains(&target.group)
    }

    pub(super) fn is_due(&self, target: Target) -> bool {
        self.next.get(&target).is_some_and(|next| next.due_s.is_some_and(|due_s| due_s <= 0.0))
    }

    /// Groups that do not exist any more.
    pub(super) fn gone_groups(&self) -> Vec<GroupId> {
        self.next.values().filter(|next| !next.exists).map(|next| next.target.group).collect()
    }

    /// The report to the dispatcher.
    pub(super) fn result(&self, targets: &[Target], mut claims: Vec<Claim>) -> RoundResult<Key, Box<Claim>> {
        let open_targets = self.open_targets(&mut claims);
        // Changed names are not empty: demands that found no room in this round wait for them too.
        let mut result = RoundResult { more: self.names_changed.iter().cloned().collect(), ..RoundResult::default() };
        for target in targets {
            if let Some(left) = self.announced_only(*target) {
                result.followed.push(target.key());
                result.more.extend((left == LeftAnnounced::Some).then(|| target.key()));
                continue;
            }
            match self.state(*target, open_targets.contains(target)) {
                KeyState::More => result.more.push(target.key()),
                KeyState::Contended => result.contended.push(target.key()),
                KeyState::DueIn(delay) => result.dues.push((target.key(), delay)),
                KeyState::Empty => {}
            }
        }
        let answered = claims.into_iter().filter(|claim| !claim.waits());
        result.leases = answered.map(|claim| (claim.id, Box::new(claim))).collect();
        result
    }

    /// The targets of claims that got nothing. A claim whose group is gone resolves its names
    /// again.
    fn open_targets(&self, claims: &mut [Claim]) -> HashSet<Target> {
        let mut open_targets = HashSet::new();
        for claim in claims.iter_mut().filter(|claim| claim.waits()) {
            open_targets.extend(&claim.targets);
            if claim.targets.iter().any(|target| self.next.get(target).is_some_and(|next| !next.exists)) {
                claim.names_changed();
            }
        }
        open_targets
    }

    fn state(&self, target: Target, is_open: bool) -> KeyState {
        let next = self.next.get(&target);
        if next.is_some_and(|next| !next.exists)
            // Every claim was served, so the round did not read what is left.
            || !is_open
            || self.untried.contains(&target)
            || self.more_to_mark.contains(&target.queue)
        {
            return KeyState::More;
        }
        match next.and_then(|next| next.due_s) {
            Some(due_s) if due_s <= 0.0 && self.passes(target) => KeyState::More,
            // Due but not claimed: another claim holds its row at the moment.
            Some(due_s) if due_s <= 0.0 => KeyState::Contended,
            // A due time too far away for a duration counts as none.
            Some(due_s) => Duration::try_from_secs_f64(due_s).map_or(KeyState::Empty, KeyState::DueIn),
            None => KeyState::Empty,
        }
    }

    /// The report to the memory.
    pub(super) fn update(&self, memory: &mut Memory, targets: &[Target], more: &[Key]) {
        let more: HashSet<Target> = more.iter().filter_map(Target::of).collect();
        for target in targets.iter().filter(|target| target.is_any_partition()) {
            let next = self.next.get(target);
            let shown = Shown {
                plain: next.map(|next| next.exists && next.plain),
                left_ready: more.contains(target) && self.read_ready.contains(&target.group),
                complete_in: next.and_then(|_| self.stretch(target.group)),
            };
            memory.learn(target.group, shown);
        }
    }
}

/// What a round showed of a key.
enum KeyState {
    More,
    Contended,
    DueIn(Duration),
    Empty,
}
