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
use super::search::NextDue;
use crate::messages::ids::{GroupId, QueueId};
use crate::messages::key::Key;

/// What the steps of the round showed. Fields that only grow are open to the steps; those with a
/// rule have methods.
#[derive(Debug, Default)]
pub(super) struct Report {
    /// The current stretch of each group's key.
    stretches: HashMap<GroupId, Stretch>,
    /// Names that mean something else now. Written before the first step.
    pub(super) names_changed: HashSet<Key>,
    /// Groups of which the round read all ready partitions, and did not only claim by name. Written
    /// by steps one to three.
    pub(super) read_ready: HashSet<GroupId>,
    /// Groups whose cursors skipped messages that no consumer gets: deleted, expired or dead.
    /// Written by steps one to three; each try of step two begins without.
    pub(super) skipped: HashSet<GroupId>,
    /// Queues that have more new partitions than one round marks ready. Written by steps two and
    /// three.
    pub(super) more_to_mark: HashSet<QueueId>,
    /// Targets that were ready, and where the round did not claim. Written by step three.
    pub(super) untried: HashSet<Target>,
    /// Groups for which only the announced partitions were claimed, because there was nothing else:
    /// [`Self::note_announced_only`].
    announced_only: HashMap<GroupId, LeftAnnounced>,
    /// When each target that was searched is due next: [`Self::merge_next_due`].
    next: HashMap<Target, NextDue>,
}

/// Whether announced partitions are left for which no demand of the round had room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LeftAnnounced {
    Nothing,
    More,
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
    /// skipped messages: there may be one behind those, and a search must find it.
    pub(super) fn note_announced_only(&mut self, group: GroupId, left: LeftAnnounced) {
        if !self.skipped.contains(&group) {
            self.announced_only.insert(group, left);
        }
    }

    /// What is left of the announced partitions, if these are all that the target has. A target
    /// that was searched has its due time instead.
    fn left_of_announced(&self, target: Target) -> Option<LeftAnnounced> {
        let left = self.announced_only.get(&target.group).copied();
        left.filter(|_| target.is_any_partition() && !self.next.contains_key(&target))
    }

    /// Whether a search may find something for the claim.
    pub(super) fn may_find(&self, claim: &Claim) -> bool {
        match claim.targets[..] {
            [target] => claim.waits() && self.left_of_announced(target).is_none(),
            _ => claim.waits(),
        }
    }

    /// Notes when targets are due next; the last search of a target counts. Returns the queues
    /// whose outbox must be moved into the log before a claim that still waits may be reported
    /// empty.
    pub(super) fn merge_next_due(&mut self, claims: &[Claim], next: Vec<NextDue>) -> Vec<String> {
        let open_queues: HashSet<QueueId> = open_targets(claims).map(|target| target.queue).collect();
        let mut outboxes = BTreeSet::new();
        for mut next in next {
            outboxes.extend(next.outbox.take().filter(|_| open_queues.contains(&next.target.queue)));
            self.next.insert(next.target, next);
        }
        outboxes.into_iter().collect()
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
        let open: HashSet<Target> = open_targets(&claims).copied().collect();
        self.resolve_gone_groups(&mut claims);
        // Changed names are not empty: demands that found no room in this round wait for them too.
        let mut result = RoundResult { more: self.names_changed.iter().cloned().collect(), ..RoundResult::default() };
        for target in targets {
            if let Some(left) = self.left_of_announced(*target) {
                result.announced_only.push(target.key());
                result.more.extend((left == LeftAnnounced::More).then(|| target.key()));
                continue;
            }
            match self.state(*target, open.contains(target)) {
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

    /// Claims that got nothing and whose group is gone resolve their names again.
    fn resolve_gone_groups(&self, claims: &mut [Claim]) {
        for claim in claims.iter_mut().filter(|claim| claim.waits()) {
            if claim.targets.iter().any(|target| self.is_gone(*target)) {
                claim.names_changed();
            }
        }
    }

    fn is_gone(&self, target: Target) -> bool {
        self.next.get(&target).is_some_and(|next| !next.exists)
    }

    fn state(&self, target: Target, is_open: bool) -> KeyState {
        if self.is_gone(target)
            // Every claim was served, so the round did not read what is left.
            || !is_open
            || self.untried.contains(&target)
            || self.more_to_mark.contains(&target.queue)
        {
            return KeyState::More;
        }
        match self.next.get(&target).and_then(|next| next.due_s) {
            // There may be a message behind those that were skipped.
            Some(due_s) if due_s <= 0.0 && self.skipped.contains(&target.group) => KeyState::More,
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
                may_have_left_ready: more.contains(target) && self.read_ready.contains(&target.group),
                complete_in: next.and_then(|_| self.stretch(target.group)),
            };
            memory.learn(target.group, shown);
        }
    }
}

/// The targets of claims that got nothing.
fn open_targets(claims: &[Claim]) -> impl Iterator<Item = &Target> {
    claims.iter().filter(|claim| claim.waits()).flat_map(|claim| &claim.targets)
}

/// What a round showed of a key.
enum KeyState {
    More,
    Contended,
    DueIn(Duration),
    Empty,
}
