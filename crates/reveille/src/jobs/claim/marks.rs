//! Where a claim begins to read, and when it may read from further back.
//!
//! Claims leave dead entries at the head of a queue's index. Vacuum removes them, but not while a
//! transaction elsewhere keeps an old snapshot: then every claim would read all of them again, and
//! throughput would fall from minute to minute. So the place of the last job taken is remembered
//! for each priority, and a look may begin there. What was committed late, given back or moved lies
//! below it. A look from a little before the mark finds what was due lately and committed since, as
//! nearly all of it is; a look from the start finds everything. Each kind may take a twentieth of
//! the time: while they are fast, as they nearly always are, every look is one from the start.

use std::time::{Duration, Instant, SystemTime};

use crate::rest;

pub(super) const PRIORITIES: usize = 10;
/// Due time and id of a job.
pub(super) type Place = (SystemTime, i64);

/// A look this fast costs nothing worth saving; a little more for each job it brought.
const FAST: Duration = Duration::from_millis(4);
const FAST_JOB: Duration = Duration::from_micros(60);
/// How long nobody looks from the start at most.
const REST_MAX_START: Duration = Duration::from_secs(5);
/// How far before the mark lies what was due lately. Longer than an ordinary transaction that
/// enqueues stays open.
const LATELY: Duration = Duration::from_secs(10);

/// From where a look reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Begin {
    Mark,
    Lately,
    Start,
}

#[derive(Debug)]
pub(super) struct Marks {
    places: [Place; PRIORITIES],
    /// When a look may begin before the mark again, and when at the start.
    lately_at: Option<Instant>,
    start_at: Option<Instant>,
    /// When the next due may be asked for again.
    learn_at: Option<Instant>,
    begin: Begin,
}

const START: Place = (SystemTime::UNIX_EPOCH, 0);

impl Default for Marks {
    fn default() -> Self {
        Self { places: [START; PRIORITIES], lately_at: None, start_at: None, learn_at: None, begin: Begin::Start }
    }
}

impl Marks {
    /// Where this look begins, in each priority.
    pub(super) fn begin(&mut self, now: Instant, times: &mut Vec<SystemTime>, ids: &mut Vec<i64>) {
        let may = |at: Option<Instant>| at.is_none_or(|at| at <= now);
        self.begin = match () {
            () if may(self.start_at) || self.places == [START; PRIORITIES] => Begin::Start,
            () if may(self.lately_at) => Begin::Lately,
            () => Begin::Mark,
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

    /// What it brought, and how long that took.
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
            self.lately_at = rest_until(began, took, fast, rest::MAX);
        }
        if self.begin == Begin::Start {
            self.start_at = rest_until(began, took, fast, REST_MAX_START);
        }
    }

    /// How long until more may be read than the last look did; zero when that was all.
    pub(super) fn look_wait(&self, now: Instant) -> Duration {
        let next = match self.begin {
            Begin::Start => return Duration::ZERO,
            Begin::Lately => self.start_at,
            Begin::Mark => self.lately_at.min(self.start_at),
        };
        next.map_or(Duration::ZERO, |at| at.saturating_duration_since(now)).max(Duration::from_millis(1))
    }

    /// How long until the next due may be asked for.
    pub(super) fn learn_wait(&self, now: Instant) -> Duration {
        self.learn_at.map_or(Duration::ZERO, |at| at.saturating_duration_since(now))
    }

    pub(super) fn learned(&mut self, began: Instant, took: Duration) {
        self.learn_at = rest_until(began, took, FAST, rest::MAX);
    }
}

fn rest_until(began: Instant, took: Duration, fast: Duration, max: Duration) -> Option<Instant> {
    if took <= fast {
        return None;
    }
    began.checked_add(took.saturating_add(rest::after(took, max)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begin(marks: &mut Marks, now: Instant) -> SystemTime {
        let (mut times, mut ids) = (Vec::new(), Vec::new());
        marks.begin(now, &mut times, &mut ids);
        assert_eq!((times.len(), ids.len()), (PRIORITIES, PRIORITIES));
        times[5]
    }

    #[test]
    fn while_looks_are_fast_each_begins_at_the_start() {
        let (mut marks, now) = (Marks::default(), Instant::now());
        let place = (SystemTime::UNIX_EPOCH + Duration::from_secs(9), 1);

        assert_eq!(begin(&mut marks, now), SystemTime::UNIX_EPOCH);
        marks.end(now, Duration::from_millis(1), 1, [(5, place)].into_iter());

        assert_eq!(begin(&mut marks, now), SystemTime::UNIX_EPOCH);
        assert_eq!(marks.look_wait(now), Duration::ZERO);
    }

    #[test]
    fn after_a_slow_look_the_next_begin_at_the_mark_for_a_while() {
        let (mut marks, now) = (Marks::default(), Instant::now());
        let place = (SystemTime::UNIX_EPOCH + Duration::from_secs(9), 1);
        begin(&mut marks, now);
        marks.end(now, Duration::from_millis(10), 1, [(5, place)].into_iter());
        let soon = now + Duration::from_millis(20);

        assert_eq!(begin(&mut marks, soon), place.0);
        marks.end(soon, Duration::from_millis(50), 0, std::iter::empty());
        assert!(marks.look_wait(soon) > Duration::from_millis(150), "{:?}", marks.look_wait(soon));

        assert_eq!(begin(&mut marks, now + Duration::from_millis(211)), SystemTime::UNIX_EPOCH);
    }

    /// Else an idle worker on a slow machine would come back for what it has read already.
    #[test]
    fn before_anything_was_taken_every_look_is_one_from_the_start() {
        let (mut marks, now) = (Marks::default(), Instant::now());

        for _ in 0..2 {
            begin(&mut marks, now);
            marks.end(now, Duration::from_millis(200), 0, std::iter::empty());
            assert_eq!(marks.look_wait(now), Duration::ZERO);
        }
    }

    #[test]
    fn what_was_due_lately_is_read_sooner_than_the_start() {
        let (mut marks, now) = (Marks::default(), Instant::now());
        let due = |s| SystemTime::UNIX_EPOCH + Duration::from_secs(s);
        let at = |ms| now + Duration::from_millis(ms);
        begin(&mut marks, now);
        marks.end(now, Duration::from_millis(200), 1, [(5, (due(100), 1))].into_iter());

        assert_eq!(begin(&mut marks, at(999)), due(100));
        assert_eq!(marks.look_wait(at(990)), Duration::from_millis(10));
        assert_eq!(begin(&mut marks, at(1000)), due(90));
        marks.end(at(1000), Duration::from_millis(20), 0, std::iter::empty());
        assert_eq!(marks.look_wait(at(1020)), Duration::from_millis(3180));
        assert_eq!(begin(&mut marks, at(1419)), due(100));
        assert_eq!(begin(&mut marks, at(1420)), due(90));
        assert_eq!(begin(&mut marks, at(4200)), SystemTime::UNIX_EPOCH);
        assert_eq!(marks.look_wait(at(4201)), Duration::ZERO);
    }

    #[test]
    fn nobody_waits_longer_than_the_longest_rests() {
        let (mut marks, now) = (Marks::default(), Instant::now());
        let place = (SystemTime::UNIX_EPOCH + Duration::from_secs(100), 1);
        begin(&mut marks, now);
        marks.end(now, Duration::from_secs(2), 0, [(5, place)].into_iter());

        assert_eq!(begin(&mut marks, now + Duration::from_millis(2800)), place.0 - LATELY);
        assert_eq!(begin(&mut marks, now + Duration::from_secs(7)), SystemTime::UNIX_EPOCH);
    }
}
