//! Transaction ids that grow, as the statement remembers them: run by run instead of one by one.
//!
//! A run is what one push brings to one partition and was made within a short time. Few runs of a partition overlap, for their
//! keys begin with the time: a new run is compared with those alone.

use uuid::Uuid;

use super::entry::Entry;
use super::key::grows;
use super::lot::whole;

/// A run's keys were made within this time; the function `dedup_reach` counts on it.
const SPAN_MS: u64 = 64;
/// A run fits a page of PostgreSQL.
const KEYS_MAX: usize = 240;

/// Runs in the order of their partitions; `first` and `last` count from one.
#[derive(Debug, Default)]
pub(super) struct Runs {
    pub(super) partitions: Vec<i32>,
    pub(super) lows: Vec<Uuid>,
    pub(super) highs: Vec<Uuid>,
    pub(super) first: Vec<i32>,
    pub(super) last: Vec<i32>,
    pub(super) keys: Vec<Uuid>,
    pub(super) ids: Vec<Uuid>,
}

impl Runs {
    pub(super) fn of<'e>(entries: impl Iterator<Item = &'e Entry>) -> Self {
        let growing = |entry: &'e Entry| Some((entry.place.as_ref()?.id.0, entry.guard.filter(grows)?, entry.id.0));
        let mut keyed: Vec<(i32, Uuid, Uuid)> = entries.filter_map(growing).collect();
        keyed.sort_unstable();
        let mut runs = Self::default();
        for (partition, key, id) in keyed {
            let place = whole(runs.keys.len() + 1);
            if !runs.takes(partition, key, place) {
                runs.begin(partition, key, place);
            }
            runs.extend(key, id, place);
        }
        runs
    }

    /// Whether a key belongs to the last run.
    fn takes(&self, partition: i32, key: Uuid, place: i32) -> bool {
        let (Some(low), Some(first)) = (self.lows.last(), self.first.last()) else { return false };
        let room = place - first < whole(KEYS_MAX);
        room && self.partitions.last() == Some(&partition) && millis(key) - millis(*low) <= SPAN_MS
    }

    fn begin(&mut self, partition: i32, key: Uuid, place: i32) {
        self.partitions.push(partition);
        self.lows.push(key);
        self.highs.push(key);
        self.first.push(place);
        self.last.push(place);
    }

    fn extend(&mut self, key: Uuid, id: Uuid, place: i32) {
        self.keys.push(key);
        self.ids.push(id);
        if let (Some(high), Some(last)) = (self.highs.last_mut(), self.last.last_mut()) {
            *high = key;
            *last = place;
        }
    }
}

/// When it was made, by its own clock.
fn millis(key: Uuid) -> u64 {
    key.as_u64_pair().0 >> 16
}
