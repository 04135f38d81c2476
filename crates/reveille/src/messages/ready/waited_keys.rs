//! The index of waited keys: finds the keys of this process that an announcement is about.
//!
//! Owns every key that a pop waits for or may come back for, and the partitions that were announced
//! to each group. Promises that an announcement finds every key which is waited for, or known to be
//! empty. Promises also that one more key costs the same however many there are: every pop adds its
//! keys here, and pushes wait for the same lock.
//!
//! Holds at most 100,000 keys. When it is full, the key added longest ago that no pop waits for is
//! forgotten, and the hub forgets that it was empty. If no such key is found, the new key is left
//! out, and until all waited keys fit again every announcement wakes the whole hub.
//!
//! Next: `room`, which makes room for one more key; [`super::queue_keys`], the keys of one queue;
//! [`super::announced`].

mod room;

use std::collections::{HashMap, HashSet};
use std::hash::RandomState;

use hashlink::LinkedHashMap;
use tokio::time::Instant;

use super::announced::Announced;
use super::hint::About;
use super::queue_keys::{QueueKeys, claim_key};
use crate::messages::ids::{GroupId, PartitionId, QueueId};
use crate::messages::key::Key;
use room::Overflow;

/// At most so many keys are kept; see the header.
const KEYS_MAX: usize = 100_000;

#[derive(Debug, Default)]
pub(super) struct WaitedKeys {
    /// With the time each was last added; the latest stands at the end.
    keys: LinkedHashMap<Key, Instant, RandomState>,
    queues: HashMap<QueueId, QueueKeys>,
    /// Keys of queues that do not exist yet, and of namespaces and tasks.
    unresolved: HashSet<Key>,
    /// Some keys that may be waited for found no room.
    overflow: Option<Overflow>,
}

impl WaitedKeys {
    /// A pop is about to wait for these keys. `forget` makes the hub forget a key, and returns
    /// whether no pop waits for it.
    pub(super) fn add(&mut self, keys: &[Key], forget: impl Fn(&Key) -> bool) {
        let now = Instant::now();
        for key in keys {
            if let Some(added_at) = self.keys.to_back(key) {
                *added_at = now;
            } else if self.make_room(now, &forget) {
                self.insert(key.clone(), now);
            } else {
                self.note_overflow(now);
            }
        }
    }

    fn insert(&mut self, key: Key, now: Instant) {
        if let Some(queue) = queue_of(&key) {
            self.queues.entry(queue).or_default().add(&key);
        } else {
            self.unresolved.insert(key.clone());
        }
        self.keys.insert(key, now);
    }

    fn remove(&mut self, key: &Key) {
        self.keys.remove(key);
        self.unresolved.remove(key);
        let Some(queue) = queue_of(key) else { return };
        if self.queues.get_mut(&queue).is_some_and(|keys| keys.remove(key)) {
            self.queues.remove(&queue);
        }
    }

    /// Every key that the hint may be about; `None` for all keys of the hub.
    pub(super) fn keys_about(&self, about: About) -> Option<Vec<Key>> {
        if self.overflow.is_some() {
            return None;
        }
        Some(match about {
            About::Everything => return None,
            About::Names => self.unresolved.iter().cloned().collect(),
            About::Queue(queue) => self.of_queue(queue, |keys| {
                let named = keys.named.iter().flat_map(|(partition, groups)| {
                    groups.iter().map(|group| claim_key(queue, *group, Some(*partition)))
                });
                keys.any_keys(queue).chain(named).chain(keys.absent.iter().cloned()).collect()
            }),
            About::Partition(queue, partition) => self.of_queue(queue, |keys| {
                let groups = keys.named.get(&partition).into_iter().flatten();
                let named = groups.map(|group| claim_key(queue, *group, Some(partition)));
                keys.any_keys(queue).chain(named).chain(keys.absent.iter().cloned()).collect()
            }),
            About::Group(queue, group, partition) => self.of_group(queue, group, partition),
            About::LeaseEnd(queue, group) => self.of_group(queue, group, None),
        })
    }

    fn of_group(&self, queue: QueueId, group: GroupId, partition: Option<PartitionId>) -> Vec<Key> {
        self.of_queue(queue, |keys| {
            let any = keys.any.contains_key(&group).then(|| claim_key(queue, group, None));
            any.into_iter().chain(keys.named_keys(queue, group, partition)).collect()
        })
    }

    fn of_queue(&self, queue: QueueId, find: impl FnOnce(&QueueKeys) -> Vec<Key>) -> Vec<Key> {
        self.queues.get(&queue).map(find).unwrap_or_default()
    }

    /// Messages were pushed to these partitions.
    pub(super) fn note_pushed(&mut self, queue: QueueId, partitions: &[PartitionId]) {
        let Some(keys) = self.queues.get_mut(&queue) else { return };
        for announced in keys.any.values_mut() {
            for partition in partitions {
                announced.note(*partition);
            }
        }
    }

    /// A lease of the partition ended, and the group has more messages in it.
    pub(super) fn note_freed(&mut self, queue: QueueId, group: GroupId, partition: PartitionId) {
        let announced = self.queues.get_mut(&queue).and_then(|keys| keys.any.get_mut(&group));
        if let Some(announced) = announced {
            announced.note(partition);
        }
    }

    /// Remembers the partition that a hint names. Returns whether it names one.
    pub(super) fn note_hint(&mut self, about: About) -> bool {
        match about {
            About::Partition(queue, partition) => self.note_pushed(queue, &[partition]),
            About::Group(queue, group, Some(partition)) => self.note_freed(queue, group, partition),
            About::Everything | About::Names | About::Queue(_) | About::Group(_, _, None) | About::LeaseEnd(..) => {
                return false;
            }
        }
        true
    }

    pub(super) fn take_announced(&mut self, queue: QueueId, group: GroupId, most: usize) -> Announced {
        let announced = self.queues.get_mut(&queue).and_then(|keys| keys.any.get_mut(&group));
        announced.map(|announced| announced.take(most)).unwrap_or_default()
    }
}

/// The queue that the key belongs to; none for a name.
fn queue_of(key: &Key) -> Option<QueueId> {
    match key {
        Key::Claim { queue, .. } | Key::Partition(queue, _) => Some(*queue),
        Key::Queue(_) | Key::Space(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::room::KEPT_FOR;
    use super::*;
    use crate::messages::ready::announced::REMEMBERED_MAX;

    fn every_key_is_waited_for(_: &Key) -> bool {
        false
    }

    fn no_key_is_waited_for(_: &Key) -> bool {
        true
    }

    const QUEUE: QueueId = QueueId(1);
    const GROUP: GroupId = GroupId(2);
    const PARTITION: PartitionId = PartitionId(3);

    fn sorted(waited: &WaitedKeys, about: About) -> Vec<Key> {
        let mut keys = waited.keys_about(about).unwrap();
        keys.sort_unstable();
        keys
    }

    #[test]
    fn a_hint_is_about_every_key_it_may_be_about() {
        let mut waited = WaitedKeys::default();
        waited.add(
            &[
                claim_key(QUEUE, GROUP, None),
                claim_key(QUEUE, GroupId(9), None),
                claim_key(QUEUE, GROUP, Some(PARTITION)),
                claim_key(QUEUE, GROUP, Some(PartitionId(4))),
                claim_key(QueueId(7), GroupId(8), None),
                Key::Partition(QUEUE, "late".parse().unwrap()),
                Key::Queue("later".parse().unwrap()),
            ],
            no_key_is_waited_for,
        );

        let group = [
            claim_key(QUEUE, GROUP, None),
            claim_key(QUEUE, GROUP, Some(PARTITION)),
            claim_key(QUEUE, GROUP, Some(PartitionId(4))),
        ];
        let [any, this, other] = group.clone();
        let (ninth, late) = (claim_key(QUEUE, GroupId(9), None), Key::Partition(QUEUE, "late".parse().unwrap()));
        let of_queue = [any.clone(), this.clone(), other, ninth.clone(), late.clone()];
        assert_eq!(sorted(&waited, About::Queue(QUEUE)), of_queue);
        assert_eq!(sorted(&waited, About::Partition(QUEUE, PARTITION)), [any.clone(), this.clone(), ninth, late]);
        assert_eq!(sorted(&waited, About::Group(QUEUE, GROUP, Some(PARTITION))), [any, this]);
        assert_eq!(sorted(&waited, About::Group(QUEUE, GROUP, None)), group);
        assert_eq!(sorted(&waited, About::LeaseEnd(QUEUE, GROUP)), group);
        assert_eq!(sorted(&waited, About::Names), [Key::Queue("later".parse().unwrap())]);
        assert_eq!(waited.keys_about(About::Everything), None);
    }

    #[test]
    fn every_group_that_waits_remembers_a_push_once() {
        let mut waited = WaitedKeys::default();
        waited.add(&[claim_key(QUEUE, GROUP, None), claim_key(QUEUE, GroupId(9), None)], no_key_is_waited_for);

        waited.note_pushed(QUEUE, &[PARTITION, PARTITION, PartitionId(4)]);

        assert_eq!(waited.take_announced(QUEUE, GROUP, 1).partitions, [PARTITION]);
        assert_eq!(waited.take_announced(QUEUE, GROUP, 9).partitions, [PartitionId(4)]);
        assert_eq!(waited.take_announced(QUEUE, GroupId(9), 9).partitions, [PARTITION, PartitionId(4)]);
        assert_eq!(waited.take_announced(QUEUE, GROUP, 9).partitions, []);
    }

    #[test]
    fn announced_partitions_are_complete_unless_the_group_is_new_or_there_was_no_room() {
        let mut waited = WaitedKeys::default();
        waited.add(&[claim_key(QUEUE, GROUP, None)], no_key_is_waited_for);
        let many: Vec<PartitionId> = (0..REMEMBERED_MAX).map(|n| PartitionId(i32::try_from(n).unwrap())).collect();

        let first = waited.take_announced(QUEUE, GROUP, 9);
        assert!(!first.complete, "before its key was added something may have been announced");
        waited.note_pushed(QUEUE, &many);
        waited.note_pushed(QUEUE, &many);
        let Announced { more, complete, .. } = waited.take_announced(QUEUE, GROUP, 9);
        assert!(more && complete);
        waited.note_pushed(QUEUE, &many);
        waited.note_pushed(QUEUE, &[PartitionId(i32::MAX)]);
        let Announced { more, complete, .. } = waited.take_announced(QUEUE, GROUP, usize::MAX);
        assert!(!more && !complete);
        assert!(waited.take_announced(QUEUE, GROUP, 9).complete);

        waited.remove(&claim_key(QUEUE, GROUP, None));
        waited.add(&[claim_key(QUEUE, GROUP, None)], no_key_is_waited_for);
        assert!(!waited.take_announced(QUEUE, GROUP, 9).complete);
    }

    #[test]
    fn a_freed_partition_is_remembered_for_its_own_group() {
        let mut waited = WaitedKeys::default();
        waited.add(&[claim_key(QUEUE, GROUP, None), claim_key(QUEUE, GroupId(9), None)], no_key_is_waited_for);

        waited.note_freed(QUEUE, GROUP, PARTITION);
        assert!(waited.note_hint(About::Group(QUEUE, GROUP, Some(PartitionId(4)))));
        assert!(!waited.note_hint(About::Group(QUEUE, GROUP, None)));

        assert_eq!(waited.take_announced(QUEUE, GROUP, 9).partitions, [PARTITION, PartitionId(4)]);
        assert_eq!(waited.take_announced(QUEUE, GroupId(9), 9).partitions, []);
    }

    fn keys(numbers: std::ops::Range<usize>) -> Vec<Key> {
        numbers.map(|n| claim_key(QueueId(i32::try_from(n).unwrap()), GROUP, None)).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn the_least_recently_added_key_makes_room_unless_it_is_waited_for() {
        let mut waited = WaitedKeys::default();
        waited.add(&keys(0..KEYS_MAX), no_key_is_waited_for);
        tokio::time::advance(KEPT_FOR).await;

        waited.add(&keys(0..1), no_key_is_waited_for);
        waited.add(&keys(KEYS_MAX..KEYS_MAX + 2), |key| *key != keys(1..2)[0]);

        assert_eq!(waited.keys.len(), KEYS_MAX);
        for (kept, queue) in [(true, 0), (true, 1), (false, 2), (false, 3), (true, 4)] {
            assert_eq!(sorted(&waited, About::Queue(QueueId(queue))).len(), usize::from(kept), "queue {queue}");
        }
        assert_eq!(waited.queues.len(), KEYS_MAX);
    }

    #[tokio::test(start_paused = true)]
    async fn with_too_many_keys_every_hint_is_about_everything_until_all_waited_keys_have_room() {
        let mut waited = WaitedKeys::default();
        waited.add(&keys(0..KEYS_MAX), every_key_is_waited_for);
        assert!(waited.keys_about(About::Queue(QUEUE)).is_some());
        waited.add(&keys(KEYS_MAX..KEYS_MAX + 1), every_key_is_waited_for);
        assert_eq!(waited.keys_about(About::Queue(QUEUE)), None);

        tokio::time::advance(KEPT_FOR).await;
        assert!(waited.may_recover());
        waited.recover(keys(0..KEYS_MAX + 1), every_key_is_waited_for);
        assert_eq!(waited.keys_about(About::Queue(QUEUE)), None, "they are all waited for");
        assert!(!waited.may_recover(), "it was just tried");

        tokio::time::advance(KEPT_FOR).await;
        waited.recover(keys(1..2).into_iter().chain(keys(KEYS_MAX..KEYS_MAX + 1)).collect(), |key| {
            ![&keys(1..2)[0], &keys(KEYS_MAX..KEYS_MAX + 1)[0]].contains(&key)
        });
        let last = QueueId(i32::try_from(KEYS_MAX).unwrap());
        assert_eq!(sorted(&waited, About::Queue(QUEUE)), [claim_key(QUEUE, GROUP, None)]);
        assert_eq!(sorted(&waited, About::Queue(last)), [claim_key(last, GROUP, None)]);
    }

    /// The hub does not know a key that was just added, and would not find that it is waited for.
    #[tokio::test(start_paused = true)]
    async fn a_key_that_was_just_added_makes_no_room() {
        let mut waited = WaitedKeys::default();
        waited.add(&keys(0..KEYS_MAX), no_key_is_waited_for);

        waited.add(&keys(KEYS_MAX..KEYS_MAX + 1), no_key_is_waited_for);

        assert_eq!(waited.keys_about(About::Queue(QUEUE)), None);
        assert!(!waited.may_recover());
    }

    /// An index that walks all keys for each new one takes hours.
    #[tokio::test(start_paused = true)]
    async fn a_key_beyond_the_bound_costs_no_more_than_one_within() {
        let began = std::time::Instant::now();
        let mut waited = WaitedKeys::default();

        for some in keys(0..3 * KEYS_MAX).chunks(10_000) {
            tokio::time::advance(KEPT_FOR / 4).await;
            for key in some {
                waited.add(std::slice::from_ref(key), no_key_is_waited_for);
            }
        }

        assert!(began.elapsed() < Duration::from_secs(20), "it took {:?}", began.elapsed());
        assert_eq!((waited.keys.len(), waited.queues.len()), (KEYS_MAX, KEYS_MAX));
        assert!(waited.keys_about(About::Queue(QUEUE)).is_some(), "none was left out");
    }
}
