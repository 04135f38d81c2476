//! Where a claim begins to read the jobs of a queue.
//!
//! The low-water mark of a queue is the last job taken of each priority. A claim begins at one of
//! three places:
//!
//! ```text
//! begins      finds                                                       rests for at most
//! ----------  ----------------------------------------------------------  -----------------
//! Start       every job that is due                                       5 s
//! BeforeMark  what became due up to 10 s before the mark, and so nearly   0.8 s
//!             all that was committed late
//! Mark        what became due since the last job was taken                never rests
//! ```
//!
//! While claims from the start are fast, as they nearly always are, every claim is one. A slow one
//! rests (see [`crate::service::low_water`]), and until then claims begin further on.

use std::time::{Duration, Instant, SystemTime};

use crate::service::low_water::{REST_MAX, Rest};

pub(super) const PRIORITIES: usize = 10;
/// Due time and id of a job: jobs of one priority are taken in this order.
pub(super) type DueAndId = (SystemTime, i64);

/// A claim this fast is cheap; a little more for each job it brought.
const FAST: Duration = Duration::from_millis(4);
const FAST_JOB: Duration = Duration::from_micros(60);
/// The longest rest of claims from the start.
const REST_MAX_START: Duration = Duration::from_secs(5);
/// How far before the mark a claim `BeforeMark` begins. Longer than an ordinary transaction that
/// enqueues stays open.
const BEFORE_MARK: Duration = Duration::from_secs(10);
/// Before every job.
const START: DueAndId = (SystemTime::UNIX_EPOCH, 0);

/// Where a claim begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Begins {
    Mark,
    BeforeMark,
    #[default]
    Start,
}

/// The mark of one queue, and when claims may begin before it.
#[derive(Debug)]
pub(super) struct LowWater {
    /// The last job taken of each priority.
    taken: [DueAndId; PRIORITIES],
    /// When a claim may begin before the mark again, and when at the start.
    before_mark: Rest,
    start: Rest,
    /// When the next due time may be read again.
    next_due: Rest,
    /// Where the last claim began.
    last: Begins,
}

/// What a claim cost.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cost {
    pub(super) began: Instant,
    pub(super) took: Duration,
    /// Rows it returned.
    pub(super) rows: usize,
}

impl Default for LowWater {
    fn default() -> Self {
        let (before_mark, start, next_due) = (Rest::default(), Rest::default(), Rest::default());
        Self { taken: [START; PRIORITIES], before_mark, start, next_due, last: Begins::default() }
    }
}

impl LowWater {
    /// Chooses where the claim that follows begins, and returns that for each priority.
    pub(super) fn choose(&mut self, now: Instant) -> [DueAndId; PRIORITIES] {
        self.last = if self.start.is_over(now) || self.taken == [START; PRIORITIES] {
            Begins::Start
        } else if self.before_mark.is_over(now) {
            Begins::BeforeMark
        } else {
            Begins::Mark
        };
        match self.last {
            Begins::Mark => self.taken,
            Begins::BeforeMark => self.taken.map(before),
            Begins::Start => [START; PRIORITIES],
        }
    }

    /// The claim was made: the jobs it brought, with their priorities, move the mark.
    pub(super) fn claimed(&mut self, cost: Cost, jobs: impl Iterator<Item = (i16, DueAndId)>) {
        for (priority, job) in jobs {
            if let Some(last) = usize::try_from(priority).ok().and_then(|priority| self.taken.get_mut(priority)) {
                *last = job.max(*last);
            }
        }
        let Cost { began, took, rows } = cost;
        let rows = u32::try_from(rows).unwrap_or(u32::MAX);
        let fast = FAST.saturating_add(FAST_JOB.saturating_mul(rows));
        if self.last != Begins::Mark {
            self.before_mark = rest_unless_fast(began, took, fast, REST_MAX);
        }
        if self.last == Begins::Start {
            self.start = rest_unless_fast(began, took, fast, REST_MAX_START);
        }
    }

    /// How long until a claim may read more than the last one did; zero when that read everything.
    pub(super) fn claim_wait(&self, now: Instant) -> Duration {
        let left = match self.last {
            Begins::Start => return Duration::ZERO,
            Begins::BeforeMark => self.start.left(now),
            Begins::Mark => self.before_mark.left(now).min(self.start.left(now)),
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

fn before(job: DueAndId) -> DueAndId {
    (job.0.checked_sub(BEFORE_MARK).map_or(START.0, |time| time.max(START.0)), 0)
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

    /// Where a claim of priority 5 begins.
    fn begin(mark: &mut LowWater, now: Instant) -> SystemTime {
        mark.choose(now)[5].0
    }

    /// A claim that took so long, and the due time of the job of priority 5 that it brought.
    fn claimed(mark: &mut LowWater, began: Instant, took: Duration, due: Option<SystemTime>) {
        let cost = Cost { began, took, rows: usize::from(due.is_some()) };
        mark.claimed(cost, due.into_iter().map(|due| (5, (due, 1))));
    }

    #[test]
    fn while_claims_are_fast_each_begins_at_the_start() {
        let (mut mark, now) = (LowWater::default(), Instant::now());
        let due = SystemTime::UNIX_EPOCH + Duration::from_secs(9);

        assert_eq!(begin(&mut mark, now), SystemTime::UNIX_EPOCH);
        claimed(&mut mark, now, Duration::from_millis(1), Some(due));

        assert_eq!(begin(&mut mark, now), SystemTime::UNIX_EPOCH);
        assert_eq!(mark.claim_wait(now), Duration::ZERO);
    }

    #[test]
    fn after_a_slow_claim_the_next_begin_at_the_mark_for_a_while() {
        let (mut mark, now) = (LowWater::default(), Instant::now());
        let due = SystemTime::UNIX_EPOCH + Duration::from_secs(9);
        begin(&mut mark, now);
        claimed(&mut mark, now, Duration::from_millis(10), Some(due));
        let soon = now + Duration::from_millis(20);

        assert_eq!(begin(&mut mark, soon), due);
        claimed(&mut mark, soon, Duration::from_millis(50), None);
        assert!(mark.claim_wait(soon) > Duration::from_millis(150), "{:?}", mark.claim_wait(soon));

        assert_eq!(begin(&mut mark, now + Duration::from_millis(211)), SystemTime::UNIX_EPOCH);
    }

    /// Else an idle worker on a slow machine would come back for what it has read already.
    #[test]
    fn before_anything_was_taken_every_claim_begins_at_the_start() {
        let (mut mark, now) = (LowWater::default(), Instant::now());

        for _ in 0..2 {
            begin(&mut mark, now);
            claimed(&mut mark, now, Duration::from_millis(200), None);
            assert_eq!(mark.claim_wait(now), Duration::ZERO);
        }
    }

    #[test]
    fn what_was_due_lately_is_read_sooner_than_the_start() {
        let (mut mark, now) = (LowWater::default(), Instant::now());
        let due = |s| SystemTime::UNIX_EPOCH + Duration::from_secs(s);
        let at = |ms| now + Duration::from_millis(ms);
        begin(&mut mark, now);
        claimed(&mut mark, now, Duration::from_millis(200), Some(due(100)));

        assert_eq!(begin(&mut mark, at(999)), due(100));
        assert_eq!(mark.claim_wait(at(990)), Duration::from_millis(10));
        assert_eq!(begin(&mut mark, at(1000)), due(90));
        claimed(&mut mark, at(1000), Duration::from_millis(20), None);
        assert_eq!(mark.claim_wait(at(1020)), Duration::from_millis(3180));
        assert_eq!(begin(&mut mark, at(1419)), due(100));
        assert_eq!(begin(&mut mark, at(1420)), due(90));
        assert_eq!(begin(&mut mark, at(4200)), SystemTime::UNIX_EPOCH);
        assert_eq!(mark.claim_wait(at(4201)), Duration::ZERO);
    }

    #[test]
    fn the_longest_rests_bound_the_wait() {
        let (mut mark, now) = (LowWater::default(), Instant::now());
        let due = SystemTime::UNIX_EPOCH + Duration::from_secs(100);
        begin(&mut mark, now);
        claimed(&mut mark, now, Duration::from_secs(2), Some(due));

        assert_eq!(begin(&mut mark, now + Duration::from_millis(2800)), due - BEFORE_MARK);
        assert_eq!(begin(&mut mark, now + Duration::from_secs(7)), SystemTime::UNIX_EPOCH);
    }
}
