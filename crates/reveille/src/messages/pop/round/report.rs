//! Step four: what the round showed, and what that means for each key.
//!
//! The dispatcher learns which keys may have more, which are contended, when the next is due, and
//! for which ones only announcements were followed. A key in none of these lists has nothing to
//! claim.

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
    /// In which stretch of its key each group is claimed for.
    stretches: HashMap<GroupId, Stretch>,
    /// Names that mean something else now.
    pub(super) names_changed: HashSet<Key>,
    /// Groups that have nothing but what was announced to them, all of which was claimed.
    announced_only: HashMap<GroupId, Unasked>,
    /// Groups of which the round read what is ready, instead of claiming partitions by name only.
    pub(super) read_ready: HashSet<GroupId>,
    /// Groups some of whose cursors moved past messages that nobody gets: deleted, expired or dead.
    passed: HashSet<GroupId>,
    /// What the database said of a target after the claims.
    next: HashMap<Target, NextDue>,
    /// Queues that have more new partitions than one round marks ready.
    pub(super) more_to_mark: HashSet<QueueId>,
    /// Targets that were ready, and that the round did not come to.
    pub(super) untried: HashSet<Target>,
}

/// Whether partitions were announced that no demand of the round had room for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unasked {
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

    /// There is nothing for the group but what was announced, and that was claimed. A cursor that
    /// only moved on may have a message behind what it passed, so then a search must show it.
    pub(super) fn had_announced_only(&mut self, group: GroupId, unasked: Unasked) {
        if !self.passed.contains(&group) {
            self.announced_only.insert(group, unasked);
        }
    }

    fn announced_only(&self, target: Target) -> Option<Unasked> {
        let unasked = self.announced_only.get(&target.group).copied();
        unasked.filter(|_| target.is_any_partition() && !self.next.contains_key(&target))
    }

    /// Whether a search may find something for the claim.
    pub(super) fn may_find(&self, claim: &Claim) -> bool {
        match claim.targets[..] {
            [target] => claim.waits() && self.announced_only(target).is_none(),
            _ => claim.waits(),
        }
    }

    /// Notes when targets are due next. Returns the queues whose outbox must be moved into the log
    /// before a claim that still waits may be called empty.
    pub(super) fn learn_next(&mut self, claims: &[Claim], next: Vec<NextDue>) -> Vec<String> {
        let waiting = claims.iter().filter(|claim| claim.waits()).flat_map(|claim| &claim.targets);
        let waiting: HashSet<QueueId> = waiting.map(|target| target.queue).collect();
        let mut outboxes = BTreeSet::new();
        for mut next in next {
            outboxes.extend(next.outbox.take().filter(|_| waiting.contains(&next.target.queue)));
            self.next.insert(next.target, next);
        }
        outboxes.into_iter().collect()
    }

    pub(super) fn passed(&mut self, group: GroupId) {
        self.passed.insert(group);
    }

    pub(super) fn has_passed(&self) -> bool {
        !self.passed.is_empty()
    }

    /// What was passed until now; a caller that only wants to know what is passed next puts it
    /// back.
    pub(super) fn take_passed(&mut self) -> HashSet<GroupId> {
        std::mem::take(&mut self.passed)
    }

    pub(super) fn passes(&self, target: Target) -> bool {
        self.passed.contains(&target.group)
    }

    pub(super) fn is_due(&self, target: Target) -> bool {
        self.next.get(&target).is_some_and(|next| next.due_s.is_some_and(|due_s| due_s <= 0.0))
    }

    /// Groups that do not exist any more.
    pub(super) fn gone_groups(&self) -> Vec<GroupId> {
        self.next.values().filter(|next| !next.exists).map(|next| next.target.group).collect()
    }

    /// The answer to the dispatcher.
    pub(super) fn looked(&self, targets: &[Target], mut claims: Vec<Claim>) -> RoundResult<Key, Box<Claim>> {
        let waiting = self.still_waiting(&mut claims);
        // Demands that found no room in this round need these keys too, so they are not empty.
        let mut looked = RoundResult { more: self.names_changed.iter().cloned().collect(), ..RoundResult::default() };
        for target in targets {
            if let Some(unasked) = self.announced_only(*target) {
                looked.followed.push(target.key());
                looked.more.extend((unasked == Unasked::Some).then(|| target.key()));
                continue;
            }
            match self.verdict(*target, waiting.contains(target)) {
                Verdict::More => looked.more.push(target.key()),
                Verdict::Contended => looked.contended.push(target.key()),
                Verdict::DueIn(delay) => looked.dues.push((target.key(), delay)),
                Verdict::Empty => {}
            }
        }
        let answered = claims.into_iter().filter(|claim| !claim.waits());
        looked.leases = answered.map(|claim| (claim.id, Box::new(claim))).collect();
        looked
    }

    /// Where claims wait that got nothing. Those whose group is gone have their names resolved
    /// again.
    fn still_waiting(&self, claims: &mut [Claim]) -> HashSet<Target> {
        let mut waiting = HashSet::new();
        for claim in claims.iter_mut().filter(|claim| claim.waits()) {
            waiting.extend(&claim.targets);
            if claim.targets.iter().any(|target| self.next.get(target).is_some_and(|next| !next.exists)) {
                claim.names_changed();
            }
        }
        waiting
    }

    fn verdict(&self, target: Target, waiting: bool) -> Verdict {
        let next = self.next.get(&target);
        if next.is_some_and(|next| !next.exists)
            // Every claim was served, so the round may have stopped short of what is left.
            || !waiting
            || self.untried.contains(&target)
            || self.more_to_mark.contains(&target.queue)
        {
            return Verdict::More;
        }
        match next.and_then(|next| next.due_s) {
            Some(due_s) if due_s <= 0.0 && self.passes(target) => Verdict::More,
            // Due, and yet it was not claimed: somebody holds its row at the moment.
            Some(due_s) if due_s <= 0.0 => Verdict::Contended,
            // A due time further away than can be slept for is none.
            Some(due_s) => Duration::try_from_secs_f64(due_s).map_or(Verdict::Empty, Verdict::DueIn),
            None => Verdict::Empty,
        }
    }

    /// What later rounds should remember.
    pub(super) fn teach(&self, memory: &mut Memory, targets: &[Target], more: &[Key]) {
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
enum Verdict {
    More,
    Contended,
    DueIn(Duration),
    Empty,
}
