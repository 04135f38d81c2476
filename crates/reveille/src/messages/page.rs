//! Pages of long lists, and checks of the values they are filtered by.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::error::MessagesError;

/// The most that one page holds.
const LIMIT_MAX: u32 = 1000;
/// The most bytes of payloads that one page holds, unless its first entry alone has more.
pub(super) const PAGE_BYTES_MAX: i64 = 16 * 1024 * 1024;
/// To see entries beyond this, filter by time.
const OFFSET_MAX: u32 = 100_000;
/// The end of the year 9999: PostgreSQL and every client can write it.
const LATEST: Duration = Duration::from_secs(253_402_300_799);

/// A part of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Page {
    pub(super) limit: u32,
    pub(super) offset: u32,
}

impl Default for Page {
    fn default() -> Self {
        Self { limit: 100, offset: 0 }
    }
}

impl Page {
    /// At most `limit` entries, after skipping `offset`. A limit above 1,000 or an offset above
    /// 100,000 is refused; zero entries are an empty page.
    pub fn new(limit: u32, offset: u32) -> Result<Self, MessagesError> {
        let refused = |what, allowed, given: u32| MessagesError::OutOfRange { what, allowed, given: given.to_string() };
        if limit > LIMIT_MAX {
            return Err(refused("the limit", "at most 1,000", limit));
        }
        if offset > OFFSET_MAX {
            return Err(refused("the offset", "at most 100,000", offset));
        }
        Ok(Self { limit, offset })
    }

    pub(super) fn limit(self) -> i64 {
        i64::from(self.limit)
    }

    pub(super) fn offset(self) -> i64 {
        i64::from(self.offset)
    }
}

/// The nearest time that PostgreSQL can hold.
pub(super) fn moment(time: SystemTime) -> SystemTime {
    time.clamp(UNIX_EPOCH, UNIX_EPOCH + LATEST)
}

/// Refuses a text with a NUL, which PostgreSQL's text cannot hold.
pub(super) fn without_nul(what: &'static str, text: &str) -> Result<(), MessagesError> {
    if text.contains('\0') { Err(MessagesError::Nul { what }) } else { Ok(()) }
}
