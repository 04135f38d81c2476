//! How many jobs of a worker are at which step of their way.
//!
//! ```text
//! step of a job                 noted by        takes room  running  unrecorded
//! ----------------------------  --------------  ----------  -------  ----------
//! it was claimed                `claimed`       + 1                  + 1
//! its handler begins            `begins`                    + 1
//! its handler ended             `ends`                      - 1
//! its slot is free              `leaves_slot`   - 1
//! its end is recorded, or lost  `is_over`                            - 1
//! ```
//!
//! A slot is free before the end of its job is recorded: the next job does not wait for a commit.

use std::sync::atomic::{AtomicUsize, Ordering};

#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) taking_room: Count,
    pub(super) running: Count,
    pub(super) unrecorded: Count,
    /// Given back unharmed, ever.
    pub(super) released: Count,
    /// Whose handler did not come to its own end, ever.
    pub(super) dropped: Count,
}

impl Counts {
    pub(super) fn claimed(&self, jobs: usize) {
        self.taking_room.add(jobs);
        self.unrecorded.add(jobs);
    }

    pub(super) fn begins(&self) {
        self.running.add(1);
    }

    pub(super) fn ends(&self) {
        self.running.remove_one();
    }

    pub(super) fn leaves_slot(&self) {
        self.taking_room.remove_one();
    }

    pub(super) fn is_over(&self) {
        self.unrecorded.remove_one();
    }
}

/// A number of jobs that several tasks change.
#[derive(Debug, Default)]
pub(super) struct Count(AtomicUsize);

impl Count {
    pub(super) fn get(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    pub(super) fn add(&self, jobs: usize) {
        self.0.fetch_add(jobs, Ordering::Relaxed);
    }

    fn remove_one(&self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
