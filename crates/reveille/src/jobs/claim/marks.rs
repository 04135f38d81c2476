//! Where a claim begins to read, and when it may read from the start.
//!
//! Claims leave dead entries at the head of a queue's index. Vacuum removes them, but not while a transaction elsewhere keeps an old
//! snapshot: then every claim would read all of them again, and throughput would fall from minute to minute. So the place of the
//! last job taken is remembered for each priority, and a look may begin there. What was committed late, given back or moved lies
//! below it; a look from the start finds that. Such looks may take a twentieth of the time: while they are fast, as they nearly
//! always are, every look is one.

use std::time::{Duration, Instant, SystemTime};

pub(super) const PRIORITIES: usize = 10;
/// Due time and id of a job.
pub(super) type Place = (SystemTime, i64);

/// A look this fast costs nothing worth saving; a little more for each job it brought.
const FAST: Duration = Duration::from_millis(4);
const FAST_JOB: Duration = Duration::from_micros(60);
/// How many times as long as a slow look the next one must wait, and how long at most.
const REST: u32 = 20;
const REST_MAX: Duration = Duration::from_millis(800);

#[derive(Debug)]
pub(super) struct Marks {
    places: [Place; PRIORITIES],
    /// When a look may begin at the start again.
    start_at: Option<Instant>,
    /// When the next due may be asked for again.
    learn_at: Option<Instant>,
    from_start: bool,
}

const START: Place = (SystemTime::UNIX_EPOCH, 0);

impl Default for Marks {
    fn default() -> Self {
        Self { places: [START; PRIORITIES], start_at: None, learn_at: None, from_start: true }
    }
}

impl Marks {
    /// Where this look begins, in each priority.
    pub(super) fn begin(&mut self, now: Instant, times: &mut Vec<SystemTime>, ids: &mut Vec<i64>) {
        self.from_start = self.start_at.is_none_or(|at| at <= now);
        for place in self.places {
            let (time, id) = if self.from_start { START } else { place };
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
        if self.from_start {
            let rows = u32::try_from(rows).unwrap_or(u32::MAX);
            self.start_at = rest(began, took, FAST.saturating_add(FAST_JOB.saturating_mul(rows)));
        }
    }

    /// How long until the start may be read; zero when the last look did.
    pub(super) fn look_wait(&self, now: Instant) -> Duration {
        if self.from_start {
            return Duration::ZERO;
        }
        self.start_at.map_or(Duration::ZERO, |at| at.saturating_duration_since(now).max(Duration::from_millis(1)))
    }

    /// How long until the next due may be asked for.
    pub(super) fn learn_wait(&self, now: Instant) -> Duration {
        self.learn_at.map_or(Duration::ZERO, |at| at.saturating_duration_since(now))
    }

    pub(super) fn learned(&mut self, began: Instant, took: Duration) {
        self.learn_at = rest(began, took, FAST);
    }
}

fn rest(began: Instant, took: Duration, fast: Duration) -> Option<Instant> {
    if took <= fast {
        return None;
    }
    began.checked_add(took.saturating_add(took.saturating_mul(REST).min(REST_MAX)))
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

    #[test]
    fn nobody_waits_longer_than_the_longest_rest_for_the_start() {
        let (mut marks, now) = (Marks::default(), Instant::now());
        begin(&mut marks, now);
        marks.end(now, Duration::from_secs(2), 0, std::iter::empty());

        assert_eq!(begin(&mut marks, now + Duration::from_millis(2801)), SystemTime::UNIX_EPOCH);
    }
}
