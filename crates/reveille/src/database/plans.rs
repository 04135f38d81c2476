//! Plans that have become slow are discarded.
//!
//! Our sessions plan a statement once and keep the plan (see [`super::session`]). A plan made while
//! the tables were small may read them whole when they have grown, and the server replaces it only
//! after its next `analyze`, a minute later or more. So after a slow answer a connection discards
//! all plans of its session: the planner then uses the present size of the tables. That costs
//! milliseconds, at most once a second.
//!
//! Next: [`super::connection`], which reports how long its statements took.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// No statement of ours takes this long by a good plan, unless it waits for a lock or for the disk.
const SLOW: Duration = Duration::from_millis(50);
const EVERY: Duration = Duration::from_secs(1);

pub(crate) const DISCARD: &str = "discard plans";

/// When the plans of a session were last discarded.
#[derive(Debug, Default)]
pub(crate) struct Plans {
    discarded: Mutex<Option<Instant>>,
}

impl Plans {
    /// Whether an answer that took from `asked` to `now` is a reason to discard the plans. True at
    /// most once a second.
    pub(crate) fn are_doubtful(&self, asked: Instant, now: Instant) -> bool {
        if now.duration_since(asked) < SLOW {
            return false;
        }
        let mut discarded = self.discarded.lock().unwrap_or_else(PoisonError::into_inner);
        let lately = discarded.is_some_and(|at| now.duration_since(at) < EVERY);
        if !lately {
            *discarded = Some(now);
        }
        !lately
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_are_doubted_after_a_slow_answer_and_once_a_second() {
        let (plans, start) = (Plans::default(), Instant::now());
        let at = |ms| start + Duration::from_millis(ms);

        assert!(!plans.are_doubtful(start, at(49)));
        assert!(plans.are_doubtful(start, at(50)));
        assert!(!plans.are_doubtful(at(900), at(1049)));
        assert!(!plans.are_doubtful(at(1049), at(1051)));
        assert!(plans.are_doubtful(at(900), at(1051)));
    }
}
