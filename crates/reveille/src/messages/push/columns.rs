//! A batch as the columns that `messages/push/append.sql` takes.
//!
//! ```text
//! items          1  2  3  4  5  6  7     one message each
//! segments      [1  2][3][4][5  6  7]    one row of the log each: a range of items
//! partitions    [a      ][b][c      ]    one partition row each: its items and growing keys
//! growing keys      1  2     3  4        of those items whose key grows, in their order
//! ```
//!
//! Ranges count from one and include both ends, as SQL does. Everything is in the order of the
//! batch.

use uuid::Uuid;

use super::batch::PushBatch;
use super::entry::Entry;
use super::key::grows;
use crate::database::Param;

/// A segment holds at most so many messages, or so many bytes unless its first message alone has
/// more.
const SEGMENT_MESSAGES_MAX: i32 = 256;
const SEGMENT_BYTES_MAX: usize = 1024 * 1024;

/// The parameters of the append that do not depend on who calls it.
#[derive(Debug)]
pub(super) struct Columns<'b> {
    queues: Vec<&'b str>,
    partitions: Vec<i32>,
    partition_messages: Vec<i32>,
    partition_key_lows: Vec<Option<Uuid>>,
    partition_key_highs: Vec<Option<Uuid>>,
    partition_keys_from: Vec<i32>,
    partition_keys_to: Vec<i32>,
    key_id: Option<i32>,
    segment_partitions: Vec<i32>,
    segments_from: Vec<i32>,
    segments_to: Vec<i32>,
    segments_through: Vec<i32>,
    segment_bytes: Vec<i32>,
    ids: Vec<Uuid>,
    transaction_ids: Option<Vec<Option<&'b str>>>,
    payloads: Vec<&'b [u8]>,
    trace_ids: Option<Vec<Option<Uuid>>>,
    producers: Option<Vec<Option<&'b str>>>,
    random_keys: Option<Vec<Option<Uuid>>>,
    random_key_count: i64,
    growing_keys: Vec<Uuid>,
    growing_key_ids: Vec<Uuid>,
}

impl<'b> Columns<'b> {
    pub(super) fn of(batch: &'b PushBatch) -> Self {
        let entries = || batch.entries().iter();
        let Shape { partitions, segments } = Shape::of(batch.entries());
        let growing = || entries().filter_map(|entry| Some((growing_key(entry)?, entry.id.0)));
        Self {
            queues: batch.queues(),
            partitions: column(&partitions, |partition| partition.id),
            partition_messages: column(&partitions, |partition| partition.messages),
            partition_key_lows: column(&partitions, |partition| partition.key_low),
            partition_key_highs: column(&partitions, |partition| partition.key_high),
            partition_keys_from: column(&partitions, |partition| partition.keys_from),
            partition_keys_to: column(&partitions, |partition| partition.keys_to),
            key_id: batch.key_id,
            segment_partitions: column(&segments, |segment| segment.partition),
            segments_from: column(&segments, |segment| segment.from),
            segments_to: column(&segments, |segment| segment.to),
            segments_through: column(&segments, |segment| segment.through),
            segment_bytes: column(&segments, |segment| whole(segment.bytes)),
            ids: entries().map(|entry| entry.id.0).collect(),
            transaction_ids: unless_empty(entries().map(|entry| entry.item.transaction_id.as_deref())),
            payloads: entries().map(Entry::stored_payload).collect(),
            trace_ids: unless_empty(entries().map(|entry| entry.item.trace_id)),
            producers: unless_empty(entries().map(|entry| entry.item.producer.as_deref())),
            random_keys: unless_empty(entries().map(random_key)),
            random_key_count: whole(entries().filter_map(random_key).count()).into(),
            growing_keys: growing().map(|(key, _)| key).collect(),
            growing_key_ids: growing().map(|(_, id)| id).collect(),
        }
    }

    /// In the order of the statement's parameters.
    pub(super) fn params<'p>(&'p self, check_outbox: &'p bool) -> [Param<'p>; 23] {
        [
            check_outbox,
            &self.queues,
            &self.partitions,
            &self.partition_messages,
            &self.partition_key_lows,
            &self.partition_key_highs,
            &self.partition_keys_from,
            &self.partition_keys_to,
            &self.key_id,
            &self.segment_partitions,
            &self.segments_from,
            &self.segments_to,
            &self.segments_through,
            &self.segment_bytes,
            &self.ids,
            &self.transaction_ids,
            &self.payloads,
            &self.trace_ids,
            &self.producers,
            &self.random_keys,
            &self.random_key_count,
            &self.growing_keys,
            &self.growing_key_ids,
        ]
    }
}

/// How the items lie in partitions and segments.
#[derive(Default)]
struct Shape {
    partitions: Vec<Partition>,
    segments: Vec<Segment>,
}

struct Partition {
    id: i32,
    messages: i32,
    /// The least and the greatest of its growing keys, and where they are.
    key_low: Option<Uuid>,
    key_high: Option<Uuid>,
    keys_from: i32,
    keys_to: i32,
}

struct Segment {
    partition: i32,
    from: i32,
    to: i32,
    /// How many messages of the partition lie up to its end.
    through: i32,
    bytes: usize,
}

impl Shape {
    fn of(entries: &[Entry]) -> Self {
        let mut shape = Self::default();
        for (number, entry) in (1..).zip(entries) {
            let id = entry.partition.as_ref().map_or(0, |partition| partition.id.0);
            let partition = shape.partition(id);
            partition.add(growing_key(entry));
            let (through, bytes) = (partition.messages, entry.stored_payload().len());
            let segment = shape.segment(id, number, bytes);
            segment.to = number;
            segment.through = through;
            segment.bytes += bytes;
        }
        shape
    }

    /// The partition of the next item: the last one, or a new one.
    fn partition(&mut self, id: i32) -> &mut Partition {
        let keys_to = self.partitions.last().map_or(0, |last| last.keys_to);
        let empty = Partition { id, messages: 0, key_low: None, key_high: None, keys_from: keys_to + 1, keys_to };
        last_or_new(&mut self.partitions, |last| last.id == id, empty)
    }

    /// The segment of the next item: the last one while there is room in it, or a new one.
    fn segment(&mut self, partition: i32, number: i32, bytes: usize) -> &mut Segment {
        let has_room = |last: &Segment| {
            last.partition == partition
                && last.to - last.from + 1 < SEGMENT_MESSAGES_MAX
                && last.bytes.saturating_add(bytes) <= SEGMENT_BYTES_MAX
        };
        let empty = Segment { partition, from: number, to: number, through: 0, bytes: 0 };
        last_or_new(&mut self.segments, has_room, empty)
    }
}

impl Partition {
    fn add(&mut self, growing_key: Option<Uuid>) {
        self.messages += 1;
        let Some(key) = growing_key else { return };
        self.key_low = Some(self.key_low.map_or(key, |low| low.min(key)));
        self.key_high = self.key_high.max(Some(key));
        self.keys_to += 1;
    }
}

fn last_or_new<T>(all: &mut Vec<T>, goes_on: impl FnOnce(&T) -> bool, new: T) -> &mut T {
    if !all.last().is_some_and(goes_on) {
        all.push(new);
    }
    let last = all.len() - 1;
    &mut all[last]
}

fn column<S, T>(rows: &[S], value: impl Fn(&S) -> T) -> Vec<T> {
    rows.iter().map(value).collect()
}

/// The column, unless all of it is null: an unused column takes no room in the log.
fn unless_empty<T>(values: impl Iterator<Item = Option<T>> + Clone) -> Option<Vec<Option<T>>> {
    values.clone().any(|value| value.is_some()).then(|| values.collect())
}

/// The key, if the log remembers it.
fn growing_key(entry: &Entry) -> Option<Uuid> {
    entry.checked_key.filter(grows)
}

/// The key, if it is remembered in a row of its own.
fn random_key(entry: &Entry) -> Option<Uuid> {
    entry.checked_key.filter(|key| !grows(key))
}

/// A flush is far too small for a number that does not fit.
fn whole(number: usize) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests;
