//! Where a claim begins to read the jobs of a queue.
//!
//! The low-water mark of a queue is the last job taken of each priority. A claim begins at one of
//! three places:
//!
//! ```text
//! begins     finds                                                       at most every
//! ---------  ----------------------------------------------------------  -------------
//! Start      every job that is due                                       5 s
//! Lately     what became due up to 10 s before the mark, and so nearly   0.8 s
//!            all that was committed late
//! Mark       what became due since the last job was taken                always
//! ```
//!
//! While claims from the start are fast, as they nearly always are, every claim is one. A slow one
//! rests (see [`crate::service::low_water`]), and the next begin further on.

use std::time::{Duration, Instant, SystemTime};

use crate::service::low_water::{REST_MAX, Rest};

pub(super) const PRIORITIES: usize = 10;
/// Due time and id of a job.
pub(super) type Place = (SystemTime, i64);

/// A claim this fast is cheap; a little more for each job it brought.
const FAST: Duration = Duration::from_millis(4);
const FAST_JOB: Duration = Duration::from_micros(60);
/// The longest rest of claims from the start.
const REST_MAX_START: Duration = Duration::from_secs(5);
/// How far before the mark a claim of kind `Lately` begins. Longer than an ordinary transaction
/// that enqueues stays open.
const LATELY: Duration = Duration::from_secs(10);

/// From where a claim reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Begin {
    Mark,
    Lately,
    #[default]
    Start,
}

/// The mark of one queue.
#[derive(Debug)]
pub(super) struct LowWater {
    places: [Place; PRIORITIES],
    /// When a claim may begin before the mark again, and when at the start.
    lately: Rest,
    start: Rest,
    /// When the next due time may be read again.
    next_due: Rest,
    /// From where the last claim read.
    begin: Begin,
}

const START: Place = (SystemTime::UNIX_EPOCH, 0);

impl Default for LowWater {
    fn default() -> Self {
        let (lately, start, next_due) = (Rest::default(), Rest::default(), Rest::default());
        Self { places: [START; PRIORITIES], lately, start, next_due, begin: Begin::default() }
    }
}

impl LowWater {
    /// Where this claim begins, in each priority.
    pub(super) fn begin(&mut self, now: Instant, times: &mut Vec<SystemTime>, ids: &mut Vec<i64>) {
        self.begin = if self.start.is_over(now) || self.places == [START; PRIORITIES] {
            Begin::Start
        } else if self.lately.is_over(now) {
            Begin::Lately
        } else {
            Begin::Mark
        };
        for place in self.places {
            let (time, id) = match self.begin {
                Begin::Mark => place,
                Begin::Lately => (place.0.checked_sub(LATELY).map_or(START.0, |time| time.max(START.0)), 0),
                Begin::Start => START,
            };
            times.push(time);
            ids.push(id);
        }
    }

    /// What the claim brought, and how long it took.
    pub(super) fn end(
        &mut self,
        began: Instant,
        took: Duration,
        rows: usize,
        jobs: impl Iterator<Item = (i16, Place)>,
    ) {
        for (priority, place) in jobs {
            if let Some(mark) = usize::try_from(priority).ok().and_then(|priority| self.places.get_mut(priority)) {
                *mark = place.max(*mark);
            }
        }
        let rows = u32::try_from(rows).unwrap_or(u32::MAX);
        let fast = FAST.saturating_add(FAST_JOB.saturating_mul(rows));
        if self.begin != Begin::Mark {
            self.lately = rest_unless_fast(began, took, fast, REST_MAX);
        }
        if self.begin == Begin::Start {
            self.start = rest_unless_fast(began, took, fast, REST_MAX_START);
        }
    }

    /// How long until a claim may read more than the last one did; zero when that read everything.
    pub(super) fn claim_wait(&self, now: Instant) -> Duration {
        let left = match self.begin {
            Begin::Start => return Duration::ZERO,
            Begin::Lately => self.start.left(now),
            Begin::Mark => self.lately.left(now).min(self.start.left(now)),
        };
        left.max(Duration::from_millis(1))
    }

    /// How long until the next due time may be read.
    pub(super) fn next_due_wait(&self, now: Instant) -> Duration {
        self.next_due.left(now)
    }

    /// The next due time was read.
    pub(super) fn read_next_due(&mut self, began: Instant, took: Duration) {
        self.next_due = rest_unless_fast(began, took, FAST, REST_MAX);
    }
}

fn rest_unless_fast(began: Instant, took: Duration, fast: Duration, max: Duration) -> Rest {
    match began.checked_add(took) {
        Some(ended) if took > fast => Rest::after(ended, took, max),
        _ => Rest::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begin(marks: &mut LowWater, now: Instant) -> SystemTime {
        let (mut times, mut ids) = (Vec::new(), Vec::new());
        marks.begin(now, &mut times, &mut ids);
        assert_eq!((times.len(), ids.len()), (PRIORITIES, PRIORITIES));
        times[5]
    }

    #[test]
    fn while_claims_are_fast_each_begins_at_the_start() {
        let (mut marks, now) = (LowWater::default(), Instant::now());
        let place = (SystemTime::UNIX_EPOCH + Duration::from_secs(9), 1);

        assert_eq!(begin(&mut marks, now), SystemTime::UNIX_EPOCH);
        marks.end(now, Duration::from_millis(1), 1, [(5, place)].into_iter());

        assert_eq!(begin(&mut marks, now), SystemTime::UNIX_EPOCH);
        assert_eq!(marks.claim_wait(now), Duration::ZERO);
    }

    #[test]
    fn after_a_slow_claim_the_next_begin_at_the_mark_for_a_while() {
        let (mut marks, now) = (LowWater::default(), Instant::now());
        let place = (SystemTime::UNIX_EPOCH + Duration::from_secs(9), 1);
        begin(&mut marks, now);
        marks.end(now, Duration::from_millis(10), 1, [(5, place)].into_iter());
        let soon = now + Duration::from_millis(20);

        assert_eq!(begin(&mut marks, soon), place.0);
        marks.end(soon, Duration::from_millis(50), 0, std::iter::empty());
        assert!(marks.claim_wait(soon) > Duration::from_millis(150), "{:?}", marks.claim_wait(soon));

        assert_eq!(begin(&mut marks, now + Duration::from_millis(211)), SystemTime::UNIX_EPOCH);
    }

    /// Else an idle worker on a slow machine would come back for what it has read already.
    #[test]
    fn before_anything_was_taken_every_claim_begins_at_the_start() {
        let (mut marks, now) = (LowWater::default(), Instant::now());

        for _ in 0..2 {
            begin(&mut marks, now);
            marks.end(now, Duration::from_millis(200), 0, std::iter::empty());
            assert_eq!(marks.claim_wait(now), Duration::ZERO);
        }
    }

    #[test]
    fn what_was_due_lately_is_read_sooner_than_the_start() {
        let (mut marks, now) = (LowWater::default(), Instant::now());
        let due = |s| SystemTime::UNIX_EPOCH + Duration::from_secs(s);
        let at = |ms| now + Duration::from_millis(ms);
        begin(&mut marks, now);
        marks.end(now, Duration::from_millis(200), 1, [(5, (due(100), 1))].into_iter());

        assert_eq!(begin(&mut marks, at(999)), due(100));
        assert_eq!(marks.claim_wait(at(990)), Duration::from_millis(10));
        assert_eq!(begin(&mut marks, at(1000)), due(90));
        marks.end(at(1000), Duration::from_millis(20), 0, std::iter::empty());
        assert_eq!(marks.claim_wait(at(1020)), Duration::from_millis(3180));
        assert_eq!(begin(&mut marks, at(1419)), due(100));
        assert_eq!(begin(&mut marks, at(1420)), due(90));
        assert_eq!(begin(&mut marks, at(4200)), SystemTime::UNIX_EPOCH);
        assert_eq!(marks.claim_wait(at(4201)), Duration::ZERO);
    }

    #[test]
    fn the_longest_rests_bound_the_wait() {
        let (mut marks, now) = (LowWater::default(), Instant::now());
        let place = (SystemTime::UNIX_EPOCH + Duration::from_secs(100), 1);
        begin(&mut marks, now);
        marks.end(now, Duration::from_secs(2), 0, [(5, place)].into_iter());

        assert_eq!(begin(&mut marks, now + Duration::from_millis(2800)), place.0 - LATELY);
        assert_eq!(begin(&mut marks, now + Duration::from_secs(7)), SystemTime::UNIX_EPOCH);
    }
}
