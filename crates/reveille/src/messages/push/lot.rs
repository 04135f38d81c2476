//! What one statement appends, as the arrays it takes.

use std::collections::HashMap;

use tokio_postgres::Row;
use uuid::Uuid;

use super::entry::{Entry, Verdict};
use super::growing::Growing;
use super::key::grows;
use crate::database::Param;
use crate::messages::ground::Ground;
use crate::messages::ids::{PartitionId, QueueId};

/// A segment holds at most so many messages, or so many bytes unless its first message alone has more.
const SEGMENT_MESSAGES_MAX: usize = 256;
const SEGMENT_BYTES_MAX: usize = 1024 * 1024;

/// Entries of one flush whose payloads are sealed alike, partition by partition, partitions ascending.
#[derive(Debug, Default)]
pub(super) struct Lot {
    /// Where they stand among the flush's entries.
    pub(super) members: Vec<usize>,
    pub(super) key_id: Option<i32>,
    /// The payloads of the members, when they are sealed.
    pub(super) sealed: Vec<Vec<u8>>,
}

impl Lot {
    /// These members, with their payloads sealed if there is a key for it. What cannot be sealed is refused.
    pub(super) fn sealed(ground: &Ground, entries: &mut [Entry], members: Vec<usize>, key_id: Option<i32>) -> Self {
        let mut lot = Self { members, key_id, sealed: Vec::new() };
        let Some(key_id) = key_id else { return lot };
        for member in &lot.members {
            let entry = &mut entries[*member];
            match ground.seal.seal(key_id, entry.id, entry.item.payload.as_bytes()) {
                Ok(sealed) => lot.sealed.push(sealed),
                Err(refused) => {
                    lot.sealed.push(Vec::new());
                    entry.verdict = Some(Verdict::Refused(refused));
                }
            }
        }
        lot.retain(|member| entries[member].verdict.is_none());
        lot
    }

    pub(super) fn is_doubtful(&self, entries: &[Entry]) -> bool {
        self.members.iter().any(|member| entries[*member].doubtful)
    }

    /// They are stored, one after the other up to their partition's end.
    pub(super) fn number(&self, entries: &mut [Entry], ends: &HashMap<i32, i64>) {
        let mut after: HashMap<i32, i64> = HashMap::with_capacity(ends.len());
        for member in self.members.iter().rev() {
            let entry = &mut entries[*member];
            let Some(partition) = entry.place.as_ref().map(|place| place.id.0) else { continue };
            let Some(end) = ends.get(&partition) else { continue };
            let seq = after.entry(partition).or_insert(*end);
            entry.verdict = Some(Verdict::Stored(*seq));
            *seq -= 1;
        }
    }

    /// What is remembered of their queues is not true any more.
    pub(super) fn unplace(&self, ground: &Ground, entries: &mut [Entry]) {
        for (queue, _) in self.partitions(entries) {
            ground.catalog.forget_queue(queue);
        }
        for member in &self.members {
            entries[*member].place = None;
        }
    }

    /// Which partitions, each once and ascending, with their queues.
    pub(super) fn partitions(&self, entries: &[Entry]) -> Vec<(QueueId, PartitionId)> {
        let places = self.members.iter().filter_map(|member| entries[*member].place.as_ref());
        let mut all: Vec<_> = places.map(|place| (place.queue, place.id)).collect();
        all.dedup();
        all
    }

    /// Which queues, by name.
    pub(super) fn queues<'e>(&self, entries: &'e [Entry]) -> Vec<&'e str> {
        let mut all: Vec<&str> = self.members.iter().map(|member| entries[*member].item.queue.as_str()).collect();
        all.dedup();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Without the members for which `keep` says no.
    pub(super) fn retain(&mut self, mut keep: impl FnMut(usize) -> bool) {
        let mut sealed = std::mem::take(&mut self.sealed).into_iter();
        let mut members = Vec::with_capacity(self.members.len());
        for member in std::mem::take(&mut self.members) {
            let payload = sealed.next();
            if keep(member) {
                members.push(member);
                self.sealed.extend(payload);
            }
        }
        self.members = members;
    }

    pub(super) fn payloads<'a>(&'a self, entries: &'a [Entry]) -> Vec<&'a [u8]> {
        if self.key_id.is_some() {
            return self.sealed.iter().map(Vec::as_slice).collect();
        }
        self.members.iter().map(|member| entries[*member].item.payload.as_bytes()).collect()
    }
}

/// The parameters of the append.
#[derive(Debug)]
pub(super) struct Arrays<'a> {
    partitions: Vec<i32>,
    counts: Vec<i32>,
    segments: Segments,
    ids: Vec<Uuid>,
    payloads: Vec<&'a [u8]>,
    transaction_ids: Option<Vec<Option<&'a str>>>,
    trace_ids: Option<Vec<Option<Uuid>>>,
    producers: Option<Vec<Option<&'a str>>>,
    keys: Option<Vec<Option<Uuid>>>,
    key_count: i64,
    growing: Growing,
    key_id: Option<i32>,
    queues: Vec<&'a str>,
}

#[derive(Debug, Default)]
struct Segments {
    partitions: Vec<i32>,
    first: Vec<i32>,
    last: Vec<i32>,
    through: Vec<i32>,
    bytes: Vec<i32>,
}

impl<'a> Arrays<'a> {
    pub(super) fn of(lot: &'a Lot, entries: &'a [Entry]) -> Self {
        let members = || lot.members.iter().map(|member| &entries[*member]);
        let payloads = lot.payloads(entries);
        let mut arrays = Self {
            partitions: Vec::new(),
            counts: Vec::new(),
            segments: Segments::default(),
            ids: members().map(|entry| entry.id.0).collect(),
            transaction_ids: some(members().map(|entry| entry.item.transaction_id.as_deref())),
            trace_ids: some(members().map(|entry| entry.item.trace_id)),
            producers: some(members().map(|entry| entry.item.producer.as_deref())),
            keys: some(members().map(loose_key)),
            key_count: whole(members().filter(|entry| loose_key(entry).is_some()).count()).into(),
            growing: Growing::default(),
            key_id: lot.key_id,
            queues: lot.queues(entries),
            payloads: Vec::new(),
        };
        for (place, (entry, payload)) in members().zip(&payloads).enumerate() {
            arrays.add(place, entry.place.as_ref().map_or(0, |place| place.id.0), payload.len());
            arrays.growing.add(entry.guard.filter(grows), entry.id.0);
        }
        arrays.payloads = payloads;
        arrays
    }

    /// The next item, counted from zero here and from one in SQL.
    fn add(&mut self, place: usize, partition: i32, bytes: usize) {
        let place = whole(place + 1);
        let segments = &mut self.segments;
        let same = self.partitions.last() == Some(&partition);
        let fits = same && segments.fits(bytes);
        if !same {
            self.partitions.push(partition);
            self.counts.push(0);
            self.growing.begin();
        }
        if let Some(count) = self.counts.last_mut() {
            *count += 1;
        }
        if !fits {
            segments.begin(partition, place);
        }
        segments.extend(place, self.counts.last().copied().unwrap_or(0), bytes);
    }

    /// In the order of the statement's parameters.
    pub(super) fn params<'p>(&'p self, check_outbox: &'p bool) -> [Param<'p>; 23] {
        [
            check_outbox,
            &self.queues,
            &self.partitions,
            &self.counts,
            &self.growing.lows,
            &self.growing.highs,
            &self.growing.first,
            &self.growing.last,
            &self.key_id,
            &self.segments.partitions,
            &self.segments.first,
            &self.segments.last,
            &self.segments.through,
            &self.segments.bytes,
            &self.ids,
            &self.transaction_ids,
            &self.payloads,
            &self.trace_ids,
            &self.producers,
            &self.keys,
            &self.key_count,
            &self.growing.keys,
            &self.growing.ids,
        ]
    }
}

impl Segments {
    fn fits(&self, bytes: usize) -> bool {
        let (Some(first), Some(last), Some(held)) = (self.first.last(), self.last.last(), self.bytes.last()) else {
            return false;
        };
        let messages = usize::try_from(last - first + 1).unwrap_or(usize::MAX);
        let held = usize::try_from(*held).unwrap_or(usize::MAX);
        messages < SEGMENT_MESSAGES_MAX && held.saturating_add(bytes) <= SEGMENT_BYTES_MAX
    }

    fn begin(&mut self, partition: i32, place: i32) {
        self.partitions.push(partition);
        self.first.push(place);
        self.last.push(place);
        self.through.push(0);
        self.bytes.push(0);
    }

    fn extend(&mut self, place: i32, through: i32, bytes: usize) {
        if let (Some(last), Some(ends), Some(held)) =
            (self.last.last_mut(), self.through.last_mut(), self.bytes.last_mut())
        {
            *last = place;
            *ends = through;
            *held = held.saturating_add(whole(bytes));
        }
    }
}

/// Whether the append did nothing because a transaction id was seen before.
pub(super) fn says_seen(rows: &[Row]) -> bool {
    rows.iter().any(|row| row.get::<_, i32>(0) == 0)
}

/// Where each partition's last new message stands, from what the append returned.
pub(super) fn ends(rows: &[Row]) -> HashMap<i32, i64> {
    let mut ends = HashMap::with_capacity(rows.len());
    for row in rows {
        let end = ends.entry(row.get(0)).or_insert(0);
        *end = row.get::<_, i64>(1).max(*end);
    }
    ends
}

/// The array, unless nothing is in it: a column that nobody uses takes no room.
fn some<T>(values: impl Iterator<Item = Option<T>> + Clone) -> Option<Vec<Option<T>>> {
    values.clone().any(|value| value.is_some()).then(|| values.collect())
}

/// The key that is remembered by itself.
fn loose_key(entry: &Entry) -> Option<Uuid> {
    entry.guard.filter(|key| !grows(key))
}

/// A flush is far smaller than what this could not hold.
pub(super) fn whole(number: usize) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}
