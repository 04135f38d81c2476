//! The low-water marks of all queues that this process claims from.
//!
//! Next: `low_water`, which has the rules.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use super::Claimed;
use super::low_water::{Cost, LowWater, PRIORITIES};
use super::shares::Quota;
use crate::jobs::ready::Queue;

#[derive(Default)]
pub(super) struct Marks {
    marks: Mutex<HashMap<Queue, LowWater>>,
}

impl Marks {
    /// Where a claim begins, as columns: queue by queue, and for each the priorities ascending.
    pub(super) fn choose_begins(&self, now: Instant, quotas: &[Quota]) -> (Vec<SystemTime>, Vec<i64>) {
        let mut marks = self.marks();
        let mut begins = Vec::with_capacity(quotas.len() * PRIORITIES);
        for quota in quotas {
            begins.extend(marks.entry(Arc::clone(&quota.queue)).or_default().choose(now));
        }
        begins.into_iter().unzip()
    }

    /// The claim was made: the marks follow the jobs that were found.
    pub(super) fn claimed(&self, quotas: &[Quota], jobs: &[Claimed], cost: Cost) {
        let mut marks = self.marks();
        for Quota { queue, .. } in quotas {
            let jobs = jobs.iter().filter(|job| job.queue == *queue).map(|job| (job.priority, job.was_due));
            marks.entry(Arc::clone(queue)).or_default().claimed(cost, jobs);
        }
    }

    /// The next due time of the queue was read.
    pub(super) fn read_next_due(&self, queue: &Queue, began: Instant, took: Duration) {
        self.marks().entry(Arc::clone(queue)).or_default().read_next_due(began, took);
    }

    /// How long until the next due time of the queue may be read: not before a claim may read
    /// everything, and not while reads of it rest.
    pub(super) fn next_due_wait(&self, queue: &Queue) -> Duration {
        let now = Instant::now();
        let wait = |mark: &LowWater| mark.claim_wait(now).max(mark.next_due_wait(now));
        self.marks().get(queue).map_or(Duration::ZERO, wait)
    }

    fn marks(&self) -> MutexGuard<'_, HashMap<Queue, LowWater>> {
        self.marks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
