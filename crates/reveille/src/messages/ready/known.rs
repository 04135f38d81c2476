//! The keys that may be waited for, by what a hint can say about them; and where something became
//! claimable lately.
//!
//! Promises that a key which is waited for, or known to be empty, is found by every hint about it;
//! or that nothing is said to be found at all: with more keys than fit, hints ring everything.
//! Promises also that to meet one more key costs the same however many there are: every pop comes
//! here, and pushes wait for it. So keys are forgotten one by one, the one that nobody came for
//! longest first; with it the hub forgets that it was empty.

use std::collections::{HashMap, HashSet};
use std::hash::RandomState;
use std::time::Duration;

use hashlink::LinkedHashMap;
use tokio::time::Instant;

use super::hint::About;
use super::places::{News, Places, claim};
use crate::messages::ids::{GroupId, PartitionId, QueueId};
use crate::messages::key::Key;

/// More keys than this are not told apart.
const KEYS_MAX: usize = 100_000;
/// Whoever came for a key waits for it in the hub a moment later, and can be asked for there. Until
/// then the key is kept.
const KEPT: Duration = Duration::from_secs(10);
/// Keys that somebody still waits for are passed over, so many at a time, when room is looked for.
const PASSED_MAX: usize = 64;
/// How often it is tried to tell keys apart again after there were too many.
const RECOVERED_EVERY: Duration = Duration::from_secs(1);

#[derive(Debug, Default)]
pub(super) struct Known {
    /// With the time somebody last came for them; the last one stands at the end.
    keys: LinkedHashMap<Key, Instant, RandomState>,
    queues: HashMap<QueueId, Places>,
    /// Queues and spaces that are not there yet.
    names: HashSet<Key>,
    /// Keys were met that are not remembered.
    overflown: Option<Overflown>,
}

#[derive(Debug)]
struct Overflown {
    /// When a key last found no room.
    at: Instant,
    /// When it was last tried to find room for all that are waited for.
    tried: Instant,
}

impl Known {
    /// Somebody is about to wait for these. `forgets` makes the hub forget a key, and answers
    /// whether nobody waits for it.
    pub(super) fn meet(&mut self, keys: &[Key], forgets: impl Fn(&Key) -> bool) {
        let now = Instant::now();
        for key in keys {
            if let Some(met) = self.keys.to_back(key) {
                *met = now;
            } else if self.makes_room(now, &forgets) {
                self.add(key.clone(), now);
            } else {
                self.overflow(now);
            }
        }
    }

    /// Whether it is time to find room for everything that is waited for. Not while keys may be on
    /// their way to the hub that were not remembered: nobody could say which.
    pub(super) fn may_recover(&self) -> bool {
        let now = Instant::now();
        let due = |it: &Overflown| now.duration_since(it.at) >= KEPT && now.duration_since(it.tried) >= RECOVERED_EVERY;
        self.overflown.as_ref().is_some_and(due)
    }

    /// These are all keys that are waited for, and the hub knows no others.
    pub(super) fn recover(&mut self, waited: Vec<Key>, forgets: impl Fn(&Key) -> bool) {
        let now = Instant::now();
        for key in waited {
            if self.keys.contains_key(&key) {
                continue;
            }
            if !self.makes_room(now, &forgets) {
                if let Some(overflown) = &mut self.overflown {
                    overflown.tried = now;
                }
                return;
            }
            self.add(key, now);
        }
        self.overflown = None;
    }

    /// Whether there is room for one more, if need be in the place of another.
    fn makes_room(&mut self, now: Instant, forgets: &impl Fn(&Key) -> bool) -> bool {
        if self.keys.len() < KEYS_MAX {
            return true;
        }
        for _ in 0..PASSED_MAX {
            let oldest = match self.keys.front() {
                Some((key, met)) if now.duration_since(*met) >= KEPT => key.clone(),
                _ => return false,
            };
            if forgets(&oldest) {
                self.remove(&oldest);
                return true;
            }
            if let Some(met) = self.keys.to_back(&oldest) {
                *met = now;
            }
        }
        false
    }

    fn overflow(&mut self, now: Instant) {
        self.overflown.get_or_insert(Overflown { at: now, tried: now }).at = now;
    }

    fn add(&mut self, key: Key, now: Instant) {
        if let Some(queue) = queue_of(&key) {
            self.queues.entry(queue).or_default().add(&key);
        } else {
            self.names.insert(key.clone());
        }
        self.keys.insert(key, now);
    }

    fn remove(&mut self, key: &Key) {
        self.keys.remove(key);
        self.names.remove(key);
        let Some(queue) = queue_of(key) else { return };
        if self.queues.get_mut(&queue).is_some_and(|places| places.remove(key)) {
            self.queues.remove(&queue);
        }
    }

    /// Everything that the hint may be about; `None` for everything there is.
    pub(super) fn keys_about(&self, about: About) -> Option<Vec<Key>> {
        if self.overflown.is_some() {
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
            About::Group(queue, group, partition) => self.of_group(queue, group, partition),
            About::LeaseEnd(queue, group) => self.of_group(queue, group, None),
        })
    }

    fn of_group(&self, queue: QueueId, group: GroupId, partition: Option<PartitionId>) -> Vec<Key> {
        self.of_queue(queue, |places| {
            let any = places.any.contains_key(&group).then(|| claim(queue, group, None));
            any.into_iter().chain(places.named_of(queue, group, partition)).collect()
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
            About::Everything | About::Names | About::Queue(_) | About::Group(_, _, None) | About::LeaseEnd(..) => {
                return false;
            }
        }
        true
    }

    pub(super) fn news(&mut self, queue: QueueId, group: GroupId, most: usize) -> News {
        let recent = self.queues.get_mut(&queue).and_then(|places| places.any.get_mut(&group));
        recent.map(|recent| recent.take(most)).unwrap_or_default()
    }
}

/// The queue whose keys it is among; none for what is not there yet.
fn queue_of(key: &Key) -> Option<QueueId> {
    match key {
        Key::Claim { queue, .. } | Key::Partition(queue, _) => Some(*queue),
        Key::Queue(_) | Key::Space(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::messages::ready::places::RECENT_MAX;

    /// Somebody waits for everything.
    fn all_wait(_: &Key) -> bool {
        false
    }

    fn nobody_waits(_: &Key) -> bool {
        true
    }

    const QUEUE: QueueId = QueueId(1);
    const GROUP: GroupId = GroupId(2);
    const PARTITION: PartitionId = PartitionId(3);

    fn sorted(known: &Known, about: About) -> Vec<Key> {
        let mut keys = known.keys_about(about).unwrap();
        keys.sort_unstable();
        keys
    }

    #[test]
    fn a_hint_is_about_every_key_it_may_be_about() {
        let mut known = Known::default();
        known.meet(
            &[
                claim(QUEUE, GROUP, None),
                claim(QUEUE, GroupId(9), None),
                claim(QUEUE, GROUP, Some(PARTITION)),
                claim(QUEUE, GROUP, Some(PartitionId(4))),
                claim(QueueId(7), GroupId(8), None),
                Key::Partition(QUEUE, "late".parse().unwrap()),
                Key::Queue("later".parse().unwrap()),
            ],
            nobody_waits,
        );

        let group = [
            claim(QUEUE, GROUP, None),
            claim(QUEUE, GROUP, Some(PARTITION)),
            claim(QUEUE, GROUP, Some(PartitionId(4))),
        ];
        let [any, this, other] = group.clone();
        let (ninth, late) = (claim(QUEUE, GroupId(9), None), Key::Partition(QUEUE, "late".parse().unwrap()));
        let of_queue = [any.clone(), this.clone(), other, ninth.clone(), late.clone()];
        assert_eq!(sorted(&known, About::Queue(QUEUE)), of_queue);
        assert_eq!(sorted(&known, About::Partition(QUEUE, PARTITION)), [any.clone(), this.clone(), ninth, late]);
        assert_eq!(sorted(&known, About::Group(QUEUE, GROUP, Some(PARTITION))), [any, this]);
        assert_eq!(sorted(&known, About::Group(QUEUE, GROUP, None)), group);
        assert_eq!(sorted(&known, About::LeaseEnd(QUEUE, GROUP)), group);
        assert_eq!(sorted(&known, About::Names), [Key::Queue("later".parse().unwrap())]);
        assert_eq!(known.keys_about(About::Everything), None);
    }

    #[test]
    fn every_group_that_waits_remembers_a_push_once() {
        let mut known = Known::default();
        known.meet(&[claim(QUEUE, GROUP, None), claim(QUEUE, GroupId(9), None)], nobody_waits);

        known.push(QUEUE, &[PARTITION, PARTITION, PartitionId(4)]);

        assert_eq!(known.news(QUEUE, GROUP, 1).partitions, [PARTITION]);
        assert_eq!(known.news(QUEUE, GROUP, 9).partitions, [PartitionId(4)]);
        assert_eq!(known.news(QUEUE, GroupId(9), 9).partitions, [PARTITION, PartitionId(4)]);
        assert_eq!(known.news(QUEUE, GROUP, 9).partitions, []);
    }

    #[test]
    fn news_is_whole_unless_the_group_is_new_or_there_was_no_room() {
        let mut known = Known::default();
        known.meet(&[claim(QUEUE, GROUP, None)], nobody_waits);
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

        known.remove(&claim(QUEUE, GROUP, None));
        known.meet(&[claim(QUEUE, GROUP, None)], nobody_waits);
        assert!(!known.news(QUEUE, GROUP, 9).whole);
    }

    #[test]
    fn a_freed_partition_is_remembered_for_its_own_group() {
        let mut known = Known::default();
        known.meet(&[claim(QUEUE, GROUP, None), claim(QUEUE, GroupId(9), None)], nobody_waits);

        known.free(QUEUE, GROUP, PARTITION);
        assert!(known.hear(About::Group(QUEUE, GROUP, Some(PartitionId(4)))));
        assert!(!known.hear(About::Group(QUEUE, GROUP, None)));

        assert_eq!(known.news(QUEUE, GROUP, 9).partitions, [PARTITION, PartitionId(4)]);
        assert_eq!(known.news(QUEUE, GroupId(9), 9).partitions, []);
    }

    fn keys(numbers: std::ops::Range<usize>) -> Vec<Key> {
        numbers.map(|n| claim(QueueId(i32::try_from(n).unwrap()), GROUP, None)).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn the_key_that_nobody_came_for_longest_makes_room_unless_somebody_waits_for_it() {
        let mut known = Known::default();
        known.meet(&keys(0..KEYS_MAX), nobody_waits);
        tokio::time::advance(KEPT).await;

        known.meet(&keys(0..1), nobody_waits);
        known.meet(&keys(KEYS_MAX..KEYS_MAX + 2), |key| *key != keys(1..2)[0]);

        assert_eq!(known.keys.len(), KEYS_MAX);
        for (kept, queue) in [(true, 0), (true, 1), (false, 2), (false, 3), (true, 4)] {
            assert_eq!(sorted(&known, About::Queue(QueueId(queue))).len(), usize::from(kept), "queue {queue}");
        }
        assert_eq!(known.queues.len(), KEYS_MAX);
    }

    #[tokio::test(start_paused = true)]
    async fn with_too_many_keys_every_hint_is_about_everything_until_all_that_are_waited_for_have_room() {
        let mut known = Known::default();
        known.meet(&keys(0..KEYS_MAX), all_wait);
        assert!(known.keys_about(About::Queue(QUEUE)).is_some());
        known.meet(&keys(KEYS_MAX..KEYS_MAX + 1), all_wait);
        assert_eq!(known.keys_about(About::Queue(QUEUE)), None);

        tokio::time::advance(KEPT).await;
        assert!(known.may_recover());
        known.recover(keys(0..KEYS_MAX + 1), all_wait);
        assert_eq!(known.keys_about(About::Queue(QUEUE)), None, "they are all waited for");
        assert!(!known.may_recover(), "it was just tried");

        tokio::time::advance(KEPT).await;
        known.recover(keys(1..2).into_iter().chain(keys(KEYS_MAX..KEYS_MAX + 1)).collect(), |key| {
            ![&keys(1..2)[0], &keys(KEYS_MAX..KEYS_MAX + 1)[0]].contains(&key)
        });
        let last = QueueId(i32::try_from(KEYS_MAX).unwrap());
        assert_eq!(sorted(&known, About::Queue(QUEUE)), [claim(QUEUE, GROUP, None)]);
        assert_eq!(sorted(&known, About::Queue(last)), [claim(last, GROUP, None)]);
    }

    /// A key that was just met is not in the hub yet, and would not be found there.
    #[tokio::test(start_paused = true)]
    async fn a_key_that_was_just_met_makes_no_room() {
        let mut known = Known::default();
        known.meet(&keys(0..KEYS_MAX), nobody_waits);

        known.meet(&keys(KEYS_MAX..KEYS_MAX + 1), nobody_waits);

        assert_eq!(known.keys_about(About::Queue(QUEUE)), None);
        assert!(!known.may_recover());
    }

    /// Whoever walks everything for each of them takes hours.
    #[tokio::test(start_paused = true)]
    async fn a_key_beyond_the_bound_costs_no_more_than_one_within() {
        let began = std::time::Instant::now();
        let mut known = Known::default();

        for some in keys(0..3 * KEYS_MAX).chunks(10_000) {
            tokio::time::advance(KEPT / 4).await;
            for key in some {
                known.meet(std::slice::from_ref(key), nobody_waits);
            }
        }

        assert!(began.elapsed() < Duration::from_secs(20), "it took {:?}", began.elapsed());
        assert_eq!((known.keys.len(), known.queues.len()), (KEYS_MAX, KEYS_MAX));
        assert!(known.keys_about(About::Queue(QUEUE)).is_some(), "none was left out");
    }
}
