//! What the index of waited keys promises, and its bounds.

use std::time::Duration;

use super::room::KEPT_FOR;
use super::*;

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
fn no_announced_partition_is_forgotten_unless_the_group_is_new_or_there_was_no_room() {
    let mut waited = WaitedKeys::default();
    waited.add(&[claim_key(QUEUE, GROUP, None)], no_key_is_waited_for);
    let many: Vec<PartitionId> = (0..REMEMBERED_MAX).map(|n| PartitionId(i32::try_from(n).unwrap())).collect();

    let first = waited.take_announced(QUEUE, GROUP, 9);
    assert!(!first.forgot_none, "before its key was added something may have been announced");
    waited.note_pushed(QUEUE, &many);
    waited.note_pushed(QUEUE, &many);
    let Announced { left_some, forgot_none, .. } = waited.take_announced(QUEUE, GROUP, 9);
    assert!(left_some && forgot_none);
    waited.note_pushed(QUEUE, &many);
    waited.note_pushed(QUEUE, &[PartitionId(i32::MAX)]);
    let Announced { left_some, forgot_none, .. } = waited.take_announced(QUEUE, GROUP, usize::MAX);
    assert!(!left_some && !forgot_none);
    assert!(waited.take_announced(QUEUE, GROUP, 9).forgot_none);

    waited.remove(&claim_key(QUEUE, GROUP, None));
    waited.add(&[claim_key(QUEUE, GROUP, None)], no_key_is_waited_for);
    assert!(!waited.take_announced(QUEUE, GROUP, 9).forgot_none);
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
