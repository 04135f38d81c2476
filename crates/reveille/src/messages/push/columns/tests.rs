//! How items lie in partitions, segments and growing keys.

use std::sync::Arc;

use super::*;
use crate::messages::catalog::PartitionEntry;
use crate::messages::ids::{PartitionId, PartitionUid, QueueId};
use crate::messages::push::PushItem;

fn entry(partition: i32, bytes: usize, key: Option<Uuid>) -> Entry {
    let item = PushItem::new("mail".parse().unwrap(), vec![b'1'; bytes]);
    let mut entry = Entry::checked(item, usize::MAX).unwrap();
    entry.partition = Some(Arc::new(PartitionEntry {
        id: PartitionId(partition),
        queue: QueueId(1),
        queue_name: "mail".parse().unwrap(),
        name: "p".parse().unwrap(),
        uid: PartitionUid(Uuid::nil()),
    }));
    entry.checked_key = key;
    entry
}

/// A key that grows with the number.
fn v7(number: u128) -> Uuid {
    Uuid::from_u128((number << 80) | (0x7000 << 64))
}

/// Partition, first and last item, messages of the partition up to its end, bytes.
fn segments(shape: &Shape) -> Vec<(i32, i32, i32, i32, usize)> {
    let all = shape.segments.iter();
    all.map(|it| (it.partition, it.from, it.to, it.through, it.bytes)).collect()
}

#[test]
fn every_partition_begins_a_segment() {
    let shape = Shape::of(&[entry(1, 4, None), entry(1, 5, None), entry(2, 6, None)]);

    assert_eq!(segments(&shape), [(1, 1, 2, 2, 9), (2, 3, 3, 1, 6)]);
    assert_eq!(column(&shape.partitions, |partition| (partition.id, partition.messages)), [(1, 2), (2, 1)]);
}

#[test]
fn a_segment_ends_with_its_messages_or_its_bytes() {
    let many: Vec<Entry> = (0..257).map(|_| entry(1, 1, None)).collect();
    let large = [entry(1, SEGMENT_BYTES_MAX + 1, None), entry(1, SEGMENT_BYTES_MAX, None), entry(1, 1, None)];

    assert_eq!(segments(&Shape::of(&many)), [(1, 1, 256, 256, 256), (1, 257, 257, 257, 1)]);
    let each = [(1, 1, 1, 1, SEGMENT_BYTES_MAX + 1), (1, 2, 2, 2, SEGMENT_BYTES_MAX), (1, 3, 3, 3, 1)];
    assert_eq!(segments(&Shape::of(&large)), each);
}

#[test]
fn growing_keys_are_a_range_of_each_partition_and_an_empty_one_where_there_are_none() {
    let (low, high, random) = (v7(1), v7(2), Uuid::from_u128(0x4000 << 64));
    let entries = [
        entry(1, 1, None),
        entry(2, 1, Some(high)),
        entry(2, 1, Some(random)),
        entry(2, 1, Some(low)),
        entry(3, 1, None),
    ];

    let shape = Shape::of(&entries);

    assert_eq!(column(&shape.partitions, |it| (it.keys_from, it.keys_to)), [(1, 0), (1, 2), (3, 2)]);
    assert_eq!(column(&shape.partitions, |it| (it.key_low, it.key_high))[1], (Some(low), Some(high)));
    assert_eq!(entries.iter().filter_map(random_key).collect::<Vec<_>>(), [random]);
}
