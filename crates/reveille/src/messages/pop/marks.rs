//! Where a search begins to read what is due and what is fresh, and when it may read from the
//! start.
//!
//! Claims, acks and pushes leave dead entries behind in the indexes of what is due and what is
//! fresh. Vacuum removes them, but not while a transaction elsewhere keeps an old snapshot: then
//! every search would read all of them again. So a search that had to read long is a mark: for a
//! while the next ones begin where it saw that nothing is left before. Before the mark can lie only
//! what was committed more than a second after it was stamped; the next search from the start finds
//! that, and whoever waits is woken for it. Such searches may take a twentieth of the time: while
//! they are fast, as they nearly always are, every search is one.

use std::collections::HashMap;
use std::time::{Duration, Instant, SystemTime};

use crate::messages::ids::GroupId;
use crate::rest;

/// Before everything.
pub(super) const START: SystemTime = SystemTime::UNIX_EPOCH;
/// To read so few entries costs nothing worth saving. Entries, not time: on a busy machine
/// everything takes long, and whoever waits would look again and again for nothing.
const FEW: i64 = 1000;
/// More groups than this are not remembered.
const GROUPS_MAX: usize = 50_000;

/// The groups whose last search from the start read much.
#[derive(Debug, Default)]
pub(super) struct Marks {
    groups: HashMap<GroupId, Mark>,
}

/// What a search cost.
#[derive(Debug, Clone, Copy)]
pub(super) struct Effort {
    /// How many entries of the index it read.
    pub(super) entries: i64,
    pub(super) took: Duration,
}

#[derive(Debug, Clone, Copy)]
struct Mark {
    place: SystemTime,
    /// When a search may begin at the start again.
    start_at: Instant,
}

impl Marks {
    /// Where a search begins that also asks for the next due.
    pub(super) fn search(&self, group: GroupId, now: Instant) -> SystemTime {
        self.groups.get(&group).filter(|mark| mark.start_at > now).map_or(START, |mark| mark.place)
    }

    /// Where one begins that does not: nobody would notice how long it takes.
    pub(super) fn glance(&self, group: GroupId) -> SystemTime {
        self.groups.get(&group).map_or(START, |mark| mark.place)
    }

    /// How long until somebody must search from the start.
    pub(super) fn wait(&self, group: GroupId, now: Instant) -> Duration {
        let start_at = self.groups.get(&group).map(|mark| mark.start_at);
        start_at.map_or(Duration::ZERO, |at| at.saturating_duration_since(now)).max(Duration::from_millis(1))
    }

    /// A search from the start has ended, and nothing is left before this place.
    pub(super) fn note(&mut self, group: GroupId, now: Instant, effort: Effort, place: SystemTime) {
        let rest = now.checked_add(rest::after(effort.took, rest::MAX));
        match rest.filter(|_| effort.entries > FEW && self.groups.len() < GROUPS_MAX) {
            Some(start_at) => _ = self.groups.insert(group, Mark { place, start_at }),
            None => _ = self.groups.remove(&group),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GROUP: GroupId = GroupId(7);

    fn place() -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(9)
    }

    #[test]
    fn while_searches_read_little_each_begins_at_the_start() {
        let (mut marks, now) = (Marks::default(), Instant::now());

        marks.note(GROUP, now, Effort { entries: FEW, took: Duration::from_secs(1) }, place());

        assert_eq!((marks.search(GROUP, now), marks.glance(GROUP)), (START, START));
    }

    #[test]
    fn after_a_long_search_the_next_begin_at_the_mark_for_a_while() {
        let (mut marks, now) = (Marks::default(), Instant::now());

        marks.note(GROUP, now, Effort { entries: FEW + 1, took: Duration::from_millis(10) }, place());

        assert_eq!(marks.search(GROUP, now + Duration::from_millis(199)), place());
        assert_eq!(marks.wait(GROUP, now), Duration::from_millis(200));
        assert_eq!(marks.search(GROUP, now + Duration::from_millis(200)), START);
        assert_eq!(marks.glance(GROUP), place(), "what nobody times does not begin at the start");
    }

    #[test]
    fn nobody_waits_longer_than_the_longest_rest_for_the_start() {
        let (mut marks, now) = (Marks::default(), Instant::now());

        marks.note(GROUP, now, Effort { entries: FEW + 1, took: Duration::from_secs(2) }, place());

        assert_eq!(marks.search(GROUP, now + rest::MAX), START);
    }

    #[test]
    fn a_search_that_reads_little_again_is_the_end_of_the_mark() {
        let (mut marks, now) = (Marks::default(), Instant::now());
        marks.note(GROUP, now, Effort { entries: FEW + 1, took: Duration::from_millis(10) }, place());

        marks.note(GROUP, now, Effort { entries: FEW, took: Duration::from_secs(1) }, place());

        assert_eq!((marks.search(GROUP, now), marks.glance(GROUP)), (START, START));
    }
}
