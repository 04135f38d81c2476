//! Transaction ids that grow, as the append takes them: for each partition the least, the greatest, and all.
//!
//! A partition knows the greatest that it was given. What is greater than that is new, and most of what is pushed is; the rest is
//! looked for, and kept apart from the log.

use uuid::Uuid;

use super::lot::whole;

/// Parallel to the partitions of a lot; `first` and `last` count from one, and lie in reverse where there are none.
#[derive(Debug, Default)]
pub(super) struct Growing {
    pub(super) lows: Vec<Option<Uuid>>,
    pub(super) highs: Vec<Option<Uuid>>,
    pub(super) first: Vec<i32>,
    pub(super) last: Vec<i32>,
    pub(super) keys: Vec<Uuid>,
    /// Of their messages.
    pub(super) ids: Vec<Uuid>,
}

impl Growing {
    /// What follows is of the next partition.
    pub(super) fn begin(&mut self) {
        let end = whole(self.keys.len());
        self.lows.push(None);
        self.highs.push(None);
        self.first.push(end + 1);
        self.last.push(end);
    }

    pub(super) fn add(&mut self, key: Option<Uuid>, id: Uuid) {
        let (Some(key), Some(low), Some(high)) = (key, self.lows.last_mut(), self.highs.last_mut()) else { return };
        *low = Some(low.map_or(key, |low| low.min(key)));
        *high = (*high).max(Some(key));
        self.keys.push(key);
        self.ids.push(id);
        if let Some(last) = self.last.last_mut() {
            *last = whole(self.keys.len());
        }
    }
}
