//! From which due time on a search reads the ready partitions of a group.
//!
//! ```text
//!   entries of the index, by due time
//!   START ── dead ── dead ── dead ──┤ mark ├── ready ── ready ── not due yet ──▶
//! ```
//!
//! A search from `START` reads every entry, also those of rows that were changed since: they are
//! dead, and vacuum cannot remove them while a transaction elsewhere holds an old snapshot. When
//! that search read many entries, the mark notes the time before which it left nothing due. Then,
//! for a rest of at most 0.8 s, searches of the group begin at the mark. Only work committed more
//! than a second after its timestamp can lie before the mark. The first search after the rest
//! begins at `START` again and finds it; the dispatcher makes one for consumers that wait.
//!
//! Owns one mark for each group whose last search from `START` read many entries.
//!
//! Next: [`crate::service::low_water`], the policy.

use std::collections::HashMap;
use std::time::{Duration, Instant, SystemTime};

use crate::messages::ids::GroupId;
use crate::service::low_water::{REST_MAX, Rest};

/// Before everything.
pub(super) const START: SystemTime = SystemTime::UNIX_EPOCH;
/// After a search that read no more entries than this, the next one begins at `START` too. Entries
/// are counted, not time: on a busy machine everything takes long, and consumers would search again
/// and again for nothing.
const CHEAP_ENTRIES_MAX: i64 = 1000;
/// More groups than this are not remembered.
const GROUPS_MAX: usize = 50_000;

#[derive(Debug, Default)]
pub(super) struct LowWater {
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
    /// Nothing was left that is due before this time.
    empty_before: SystemTime,
    /// While it lasts, searches begin at the mark.
    rest: Rest,
}

impl LowWater {
    /// For a search that also reads the next due time, and so reports what it cost.
    pub(super) fn due_since_for_search(&self, group: GroupId, now: Instant) -> SystemTime {
        self.groups.get(&group).filter(|mark| !mark.rest.is_over(now)).map_or(START, |mark| mark.empty_before)
    }

    /// For a claim that reads nothing else. Nobody counts its entries, so while there is a mark it
    /// begins there, also after the rest.
    pub(super) fn due_since_for_claim(&self, group: GroupId) -> SystemTime {
        self.groups.get(&group).map_or(START, |mark| mark.empty_before)
    }

    /// How long until a search must begin at `START`.
    pub(super) fn full_search_in(&self, group: GroupId, now: Instant) -> Duration {
        let left = self.groups.get(&group).map(|mark| mark.rest.left(now));
        left.unwrap_or_default().max(Duration::from_millis(1))
    }

    /// A search from `START` has ended, and nothing is left that is due before `empty_before`.
    pub(super) fn searched_from_start(
        &mut self,
        group: GroupId,
        now: Instant,
        effort: Effort,
        empty_before: SystemTime,
    ) {
        if effort.entries > CHEAP_ENTRIES_MAX && self.groups.len() < GROUPS_MAX {
            let rest = Rest::after(now, effort.took, REST_MAX);
            self.groups.insert(group, Mark { empty_before, rest });
        } else {
            self.groups.remove(&group);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GROUP: GroupId = GroupId(7);

    fn empty_before() -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(9)
    }

    fn after_a_search(entries: i64, took: Duration) -> (LowWater, Instant) {
        let (mut marks, now) = (LowWater::default(), Instant::now());
        marks.searched_from_start(GROUP, now, Effort { entries, took }, empty_before());
        (marks, now)
    }

    #[test]
    fn while_searches_read_little_each_begins_at_the_start() {
        let (marks, now) = after_a_search(CHEAP_ENTRIES_MAX, Duration::from_secs(1));

        assert_eq!((marks.due_since_for_search(GROUP, now), marks.due_since_for_claim(GROUP)), (START, START));
    }

    #[test]
    fn after_a_long_search_the_next_begin_at_the_mark_for_a_while() {
        let (marks, now) = after_a_search(CHEAP_ENTRIES_MAX + 1, Duration::from_millis(10));

        assert_eq!(marks.due_since_for_search(GROUP, now + Duration::from_millis(199)), empty_before());
        assert_eq!(marks.full_search_in(GROUP, now), Duration::from_millis(200));
        assert_eq!(marks.due_since_for_search(GROUP, now + Duration::from_millis(200)), START);
        assert_eq!(
            marks.due_since_for_claim(GROUP),
            empty_before(),
            "a claim that is not timed does not begin at the start"
        );
    }

    #[test]
    fn the_longest_rest_bounds_the_wait_for_a_search_from_the_start() {
        let (marks, now) = after_a_search(CHEAP_ENTRIES_MAX + 1, Duration::from_secs(2));

        assert_eq!(marks.due_since_for_search(GROUP, now + REST_MAX), START);
    }

    #[test]
    fn a_search_that_reads_little_again_is_the_end_of_the_mark() {
        let (mut marks, now) = after_a_search(CHEAP_ENTRIES_MAX + 1, Duration::from_millis(10));

        marks.searched_from_start(
            GROUP,
            now,
            Effort { entries: CHEAP_ENTRIES_MAX, took: Duration::from_secs(1) },
            empty_before(),
        );

        assert_eq!((marks.due_since_for_search(GROUP, now), marks.due_since_for_claim(GROUP)), (START, START));
    }
}
