//! The keys that may be waited for, by what a hint can say about them; and where something became claimable lately.
//!
//! Promises that a key which is waited for is found by every hint about it, or that nothing is said to be found at all: with
//! more keys than fit, hints ring everything.

use std::collections::{HashMap, HashSet, VecDeque};
use std::time::Duration;

use tokio::time::Instant;

use super::hint::About;
use crate::messages::ids::{GroupId, PartitionId, QueueId};
use crate::messages::key::Key;

/// More keys than this are not told apart.
const KEYS_MAX: usize = 100_000;
/// A key outlives its waiters in the hub for a minute, and must be rung as long.
const KEPT: Duration = Duration::from_secs(90);
/// How many partitions of a queue are remembered for each group, for claims that need not search.
const RECENT_MAX: usize = 512;

#[derive(Debug, Default)]
pub(super) struct Known {
    /// With the time somebody last came for them.
    keys: HashMap<Key, Instant>,
    spelled: HashMap<String, Key>,
    queues: HashMap<QueueId, Places>,
    /// Queues and spaces that are not there yet.
    names: HashSet<Key>,
    /// More keys were met than are remembered.
    overflown: bool,
}

/// The keys of one queue.
#[derive(Debug, Default)]
struct Places {
    any: HashMap<GroupId, Recent>,
    named: HashMap<PartitionId, HashSet<GroupId>>,
    /// Partitions that are not there yet.
    absent: HashSet<Key>,
}

/// What was said by place to a group.
#[derive(Debug, Default, PartialEq, Eq)]
pub(in crate::messages) struct News {
    pub(in crate::messages) partitions: Vec<PartitionId>,
    /// There is more than was asked for.
    pub(in crate::messages) left: bool,
    /// Nothing that was said by place was forgotten since this was last asked.
    pub(in crate::messages) whole: bool,
}

#[derive(Debug, Default)]
struct Recent {
    order: VecDeque<PartitionId>,
    held: HashSet<PartitionId>,
    /// Nothing was left out for want of room. Not so for a group that was only just met: who knows what was said before.
    whole: bool,
    /// Until when the end of a lease has been announced.
    announced: Option<Instant>,
}

impl Known {
    /// Whether there are more than should be: then [`forget_all_but`](Self::forget_all_but) helps.
    pub(super) fn meet(&mut self, keys: &[Key]) -> bool {
        let now = Instant::now();
        for key in keys {
            if let Some(met) = self.keys.get_mut(key) {
                *met = now;
            } else if self.keys.len() < KEYS_MAX {
                self.add(key.clone(), now);
            } else {
                self.overflown = true;
            }
        }
        self.overflown
    }

    /// Keeps those that are waited for, and those that were met lately.
    pub(super) fn forget_all_but(&mut self, waited: &[Key]) {
        let now = Instant::now();
        let kept: HashMap<Key, Instant> = {
            let waited: HashSet<&Key> = waited.iter().collect();
            let kept = |(key, met): &(Key, Instant)| waited.contains(key) || now.duration_since(*met) < KEPT;
            self.keys.drain().filter(kept).collect()
        };
        let unknown = waited.iter().any(|key| !kept.contains_key(key));
        let mut left = Self { overflown: unknown || kept.len() >= KEYS_MAX, ..Self::default() };
        for (key, met) in kept {
            left.add(key, met);
        }
        *self = left;
    }

    fn add(&mut self, key: Key, now: Instant) {
        match &key {
            Key::Claim { queue, group, partition: None } => {
                self.queues.entry(*queue).or_default().any.entry(*group).or_default();
            }
            Key::Claim { queue, group, partition: Some(partition) } => {
                self.queues.entry(*queue).or_default().named.entry(*partition).or_default().insert(*group);
            }
            Key::Partition(queue, _) => _ = self.queues.entry(*queue).or_default().absent.insert(key.clone()),
            Key::Queue(_) | Key::Space(_) => _ = self.names.insert(key.clone()),
        }
        self.spelled.insert(key.to_string(), key.clone());
        self.keys.insert(key, now);
    }

    pub(super) fn spelled(&self, text: &str) -> Option<Key> {
        self.spelled.get(text).cloned()
    }

    /// Everything that the hint may be about; `None` for everything there is.
    pub(super) fn keys_about(&self, about: About) -> Option<Vec<Key>> {
        if self.overflown {
            return None;
        }
        Some(match about {
            About::Everything => return None,
            About::Names => self.names.iter().cloned().collect(),
            About::Queue(queue) => self.of_queue(queue, |places| {
                let named = places
                    .named
                    .iter()
                    .flat_map(|(partition, groups)| groups.iter().map(|group| claim(queue, *group, Some(*partition))));
                places.any(queue).chain(named).chain(places.absent.iter().cloned()).collect()
            }),
            About::Partition(queue, partition) => self.of_queue(queue, |places| {
                let groups = places.named.get(&partition).into_iter().flatten();
                let named = groups.map(|group| claim(queue, *group, Some(partition)));
                places.any(queue).chain(named).chain(places.absent.iter().cloned()).collect()
            }),
            About::Group(queue, group, partition) => self.of_queue(queue, |places| {
                let named = places.named.iter().filter(|(named, groups)| {
                    groups.contains(&group) && partition.is_none_or(|partition| partition == **named)
                });
                let named = named.map(|(partition, _)| claim(queue, group, Some(*partition)));
                let any = places.any.contains_key(&group).then(|| claim(queue, group, None));
                any.into_iter().chain(named).collect()
            }),
        })
    }

    fn of_queue(&self, queue: QueueId, keys: impl FnOnce(&Places) -> Vec<Key>) -> Vec<Key> {
        self.queues.get(&queue).map(keys).unwrap_or_default()
    }

    /// Messages were pushed to these partitions, here.
    pub(super) fn push(&mut self, queue: QueueId, partitions: &[PartitionId]) {
        let Some(places) = self.queues.get_mut(&queue) else { return };
        for recent in places.any.values_mut() {
            for partition in partitions {
                recent.note(*partition);
            }
        }
    }

    /// A lease of the partition ended, and more was there.
    pub(super) fn free(&mut self, queue: QueueId, group: GroupId, partition: PartitionId) {
        let recent = self.queues.get_mut(&queue).and_then(|places| places.any.get_mut(&group));
        if let Some(recent) = recent {
            recent.note(partition);
        }
    }

    /// Remembers what was said, and answers whether it was said by place.
    pub(super) fn hear(&mut self, about: About) -> bool {
        match about {
            About::Partition(queue, partition) => self.push(queue, &[partition]),
            About::Group(queue, group, Some(partition)) => self.free(queue, group, partition),
            About::Everything | About::Names | About::Queue(_) | About::Group(_, _, None) => return false,
        }
        true
    }

    pub(super) fn news(&mut self, queue: QueueId, group: GroupId, most: usize) -> News {
        let recent = self.queues.get_mut(&queue).and_then(|places| places.any.get_mut(&group));
        recent.map(|recent| recent.take(most)).unwrap_or_default()
    }

    /// Whether the end of this lease is worth announcing: no earlier one has been.
    pub(super) fn announces_lease(&mut self, queue: QueueId, group: GroupId, lease: Duration) -> bool {
        let now = Instant::now();
        let recent = self.queues.entry(queue).or_default().any.entry(group).or_default();
        let until = now.checked_add(lease);
        let stands = recent.announced.is_some_and(|at| at > now && until.is_none_or(|until| at <= until));
        if !stands {
            recent.announced = until;
        }
        !stands
    }
}

impl Places {
    fn any(&self, queue: QueueId) -> impl Iterator<Item = Key> {
        self.any.keys().map(move |group| claim(queue, *group, None))
    }
}

impl Recent {
    fn note(&mut self, partition: PartitionId) {
        if self.held.contains(&partition) {
            return;
        }
        if self.order.len() == RECENT_MAX {
            self.whole = false;
            return;
        }
        self.held.insert(partition);
        self.order.push_back(partition);
    }

    fn take(&mut self, most: usize) -> News {
        let partitions: Vec<PartitionId> = self.order.drain(..most.min(self.order.len())).collect();
        for partition in &partitions {
            self.held.remove(partition);
        }
        News { partitions, left: !self.order.is_empty(), whole: std::mem::replace(&mut self.whole, true) }
    }
}

fn claim(queue: QueueId, group: GroupId, partition: Option<PartitionId>) -> Key {
    Key::Claim { queue, group, partition }
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUEUE: QueueId = QueueId(1);
    const GROUP: GroupId = GroupId(2);
    const PARTITION: PartitionId = PartitionId(3);

    fn sorted(known: &Known, about: About) -> Vec<String> {
        let mut keys: Vec<String> = known.keys_about(about).unwrap().iter().map(Key::to_string).collect();
        keys.sort_unstable();
        keys
    }

    #[test]
    fn a_hint_is_about_every_key_it_may_be_about() {
        let mut known = Known::default();
        known.meet(&[
            claim(QUEUE, GROUP, None),
            claim(QUEUE, GroupId(9), None),
            claim(QUEUE, GROUP, Some(PARTITION)),
            claim(QUEUE, GROUP, Some(PartitionId(4))),
            claim(QueueId(7), GroupId(8), None),
            Key::Partition(QUEUE, "late".parse().unwrap()),
            Key::Queue("later".parse().unwrap()),
        ]);

        assert_eq!(sorted(&known, About::Queue(QUEUE)), ["1/2", "1/2/3", "1/2/4", "1/9", "p/1/late"]);
        assert_eq!(sorted(&known, About::Partition(QUEUE, PARTITION)), ["1/2", "1/2/3", "1/9", "p/1/late"]);
        assert_eq!(sorted(&known, About::Group(QUEUE, GROUP, Some(PARTITION))), ["1/2", "1/2/3"]);
        assert_eq!(sorted(&known, About::Group(QUEUE, GROUP, None)), ["1/2", "1/2/3", "1/2/4"]);
        assert_eq!(sorted(&known, About::Names), ["q/later"]);
        assert_eq!(known.keys_about(About::Everything), None);
    }

    #[test]
    fn every_group_that_waits_remembers_a_push_once() {
        let mut known = Known::default();
        known.meet(&[claim(QUEUE, GROUP, None), claim(QUEUE, GroupId(9), None)]);

        known.push(QUEUE, &[PARTITION, PARTITION, PartitionId(4)]);

        assert_eq!(known.news(QUEUE, GROUP, 1).partitions, [PARTITION]);
        assert_eq!(known.news(QUEUE, GROUP, 9).partitions, [PartitionId(4)]);
        assert_eq!(known.news(QUEUE, GroupId(9), 9).partitions, [PARTITION, PartitionId(4)]);
        assert_eq!(known.news(QUEUE, GROUP, 9).partitions, []);
    }

    #[test]
    fn news_is_whole_unless_the_group_is_new_or_there_was_no_room() {
        let mut known = Known::default();
        known.meet(&[claim(QUEUE, GROUP, None)]);
        let many: Vec<PartitionId> = (0..RECENT_MAX).map(|n| PartitionId(i32::try_from(n).unwrap())).collect();

        assert!(!known.news(QUEUE, GROUP, 9).whole, "before it was met something may have been said");
        known.push(QUEUE, &many);
        known.push(QUEUE, &many);
        let News { left, whole, .. } = known.news(QUEUE, GROUP, 9);
        assert!(left && whole);
        known.push(QUEUE, &many);
        known.push(QUEUE, &[PartitionId(i32::MAX)]);
        let News { left, whole, .. } = known.news(QUEUE, GROUP, usize::MAX);
        assert!(!left && !whole);
        assert!(known.news(QUEUE, GROUP, 9).whole);

        known.forget_all_but(&[claim(QUEUE, GROUP, None)]);
        assert!(!known.news(QUEUE, GROUP, 9).whole);
    }

    #[test]
    fn a_freed_partition_is_remembered_for_its_own_group() {
        let mut known = Known::default();
        known.meet(&[claim(QUEUE, GROUP, None), claim(QUEUE, GroupId(9), None)]);

        known.free(QUEUE, GROUP, PARTITION);
        assert!(known.hear(About::Group(QUEUE, GROUP, Some(PartitionId(4)))));
        assert!(!known.hear(About::Group(QUEUE, GROUP, None)));

        assert_eq!(known.news(QUEUE, GROUP, 9).partitions, [PARTITION, PartitionId(4)]);
        assert_eq!(known.news(QUEUE, GroupId(9), 9).partitions, []);
    }

    #[tokio::test(start_paused = true)]
    async fn with_too_many_keys_every_hint_is_about_everything_until_old_ones_are_forgotten() {
        let mut known = Known::default();
        let keys = |from: usize, to: usize| -> Vec<Key> {
            let number = |n: usize| QueueId(i32::try_from(n).unwrap());
            (from..to).map(|n| claim(number(n), GROUP, None)).collect()
        };
        assert!(!known.meet(&keys(0, KEYS_MAX)));
        assert!(known.meet(&keys(KEYS_MAX, KEYS_MAX + 1)));
        assert_eq!(known.keys_about(About::Queue(QUEUE)), None);

        tokio::time::advance(KEPT).await;
        known.forget_all_but(&keys(1, 2));

        assert_eq!(sorted(&known, About::Queue(QUEUE)), ["1/2"]);
        assert_eq!(sorted(&known, About::Queue(QueueId(5))), Vec::<String>::new());
    }

    #[tokio::test(start_paused = true)]
    async fn one_end_of_a_lease_is_announced_at_a_time_unless_another_ends_sooner() {
        let mut known = Known::default();
        let mut announces = |seconds| known.announces_lease(QUEUE, GROUP, Duration::from_secs(seconds));

        assert_eq!([announces(10), announces(10), announces(5), announces(10)], [true, false, true, false]);
        tokio::time::advance(Duration::from_secs(6)).await;
        assert!(announces(10));
    }
}
