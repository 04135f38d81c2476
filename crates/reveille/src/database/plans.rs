//! Plans that have become slow are thrown away.
//!
//! Our sessions plan a statement once and keep the plan (see [`super::session`]). One that was made
//! while the tables were small may read them whole when they have grown, and the server makes it
//! anew only after its next `analyze`, a minute later or more. So whoever waited long for an answer
//! has all plans of its session made anew: the planner looks at the size that tables have now. That
//! costs milliseconds, at most once a second.
//!
//! Next: [`super::connection`], which tells how long its statements took.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// No statement of ours takes this long by a good plan, unless it waits for a lock or for the disk.
const SLOW: Duration = Duration::from_millis(50);
const EVERY: Duration = Duration::from_secs(1);

pub(crate) const DISCARD: &str = "discard plans";

/// When the plans of a session were last thrown away.
#[derive(Debug, Default)]
pub(crate) struct Plans {
    discarded: Mutex<Option<Instant>>,
}

impl Plans {
    /// Whether an answer that was waited for since then is a reason to plan anew. Says so once a
    /// second.
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
