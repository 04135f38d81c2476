//! What happened to jobs in this process, counted, under the names that dashboards expect.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use prometheus::core::Collector;
use prometheus::proto::MetricFamily;
use prometheus::{HistogramOpts, HistogramVec};

use super::event::JobEvent;
use super::lifecycle::State;
use crate::exposition::Exposition;

/// Kinds beyond this many are counted together.
const KINDS_MAX: usize = 1000;
const OTHERS: &str = "other";
/// The upper bounds of the buckets of `job_processing_seconds`.
const BUCKETS: [f64; 12] = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 60.0, 300.0, 1800.0];

/// What was counted.
#[derive(Debug)]
pub(super) struct Figures {
    kinds: Mutex<HashMap<Arc<str>, Kind>>,
    /// How long attempts took, by kind.
    took: HistogramVec,
    notified: AtomicU64,
    polled: AtomicU64,
}

/// Of one kind.
#[derive(Debug, Default, Clone, PartialEq)]
#[non_exhaustive]
pub struct Kind {
    /// Claims, by worker.
    pub claimed: BTreeMap<String, u64>,
    /// Attempts that succeeded.
    pub success: u64,
    /// Attempts that failed and are made again.
    pub failed: u64,
    /// Attempts that failed and were the last.
    pub dead: u64,
}

/// A reading of the figures.
#[derive(Debug, Default, Clone, PartialEq)]
#[non_exhaustive]
pub struct JobsFigures {
    /// By kind of job.
    pub kinds: BTreeMap<String, Kind>,
    /// Hints that arrived from other processes.
    pub notifications: u64,
    /// Claim rounds without a wake-up.
    pub polls: u64,
    /// The channel on which hints arrive.
    pub channel: String,
    /// How long attempts took, by kind.
    took: Vec<MetricFamily>,
}

impl Default for Figures {
    fn default() -> Self {
        let took = HistogramOpts::new("job_processing_seconds", "How long attempts took.").buckets(BUCKETS.to_vec());
        Self {
            kinds: Mutex::default(),
            took: HistogramVec::new(took, &["job_type"]).expect("the bounds rise, and the names are letters"),
            notified: AtomicU64::new(0),
            polled: AtomicU64::new(0),
        }
    }
}

impl Figures {
    pub(super) fn count(&self, event: &JobEvent) {
        match event {
            JobEvent::Claimed { job, worker, .. } => {
                self.note(&job.kind, None, |kind| match kind.claimed.get_mut(&**worker) {
                    Some(count) => *count += 1,
                    None => _ = kind.claimed.insert(worker.to_string(), 1),
                });
            }
            JobEvent::Completed { job, took } => self.note(&job.kind, Some(*took), |kind| kind.success += 1),
            JobEvent::Failed { job, state: State::Scheduled, took, .. } => {
                self.note(&job.kind, Some(*took), |kind| kind.failed += 1);
            }
            JobEvent::Failed { job, took, .. } => self.note(&job.kind, Some(*took), |kind| kind.dead += 1),
            // How long it took is unknown, since the worker that ran it is gone.
            JobEvent::Ended { job, state: State::Dead } => self.note(&job.kind, None, |kind| kind.dead += 1),
            JobEvent::Notified => _ = self.notified.fetch_add(1, Ordering::Relaxed),
            JobEvent::Polled => _ = self.polled.fetch_add(1, Ordering::Relaxed),
            JobEvent::Enqueued { .. }
            | JobEvent::Started { .. }
            | JobEvent::Settled { .. }
            | JobEvent::Ended { .. }
            | JobEvent::LeaseLost { .. } => {}
        }
    }

    pub(super) fn read(&self, channel: &str) -> JobsFigures {
        JobsFigures {
            kinds: self.kinds().iter().map(|(name, kind)| (name.to_string(), kind.clone())).collect(),
            notifications: self.notified.load(Ordering::Relaxed),
            polls: self.polled.load(Ordering::Relaxed),
            channel: channel.to_owned(),
            took: self.took.collect(),
        }
    }

    /// Something happened to a job of this kind.
    fn note(&self, name: &Arc<str>, took: Option<Duration>, change: impl FnOnce(&mut Kind)) {
        let mut kinds = self.kinds();
        let known = kinds.len() < KINDS_MAX || kinds.contains_key(name);
        let name = if known { Arc::clone(name) } else { Arc::from(OTHERS) };
        change(kinds.entry(Arc::clone(&name)).or_default());
        drop(kinds);
        // A kind without a timed attempt has its histogram too: a counter that appears late counts
        // from its second value.
        let timed = self.took.with_label_values(&[&*name]);
        if let Some(took) = took {
            timed.observe(took.as_secs_f64());
        }
    }

    fn kinds(&self) -> MutexGuard<'_, HashMap<Arc<str>, Kind>> {
        self.kinds.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl JobsFigures {
    /// As Prometheus reads it, with the depths by kind that [`Jobs::depths`](super::Jobs::depths)
    /// returned.
    pub fn prometheus(&self, depths: &BTreeMap<String, u64>) -> String {
        let mut page = Exposition::default();
        let depths = depths.iter().map(|(kind, depth)| ([kind.as_str()], *depth));
        page.many("job_queue_depth", "", ["job_type"], depths);
        let claimed = self.kinds.iter().flat_map(|(name, kind)| {
            kind.claimed.iter().map(|(worker, count)| ([name.as_str(), worker.as_str()], *count))
        });
        page.many("job_claimed_total", "", ["job_type", "worker_id"], claimed);
        let completed = self.kinds.iter().flat_map(|(name, kind)| {
            let by_status = [("success", kind.success), ("failed", kind.failed), ("dead", kind.dead)];
            by_status.map(|(status, count)| ([name.as_str(), status], count))
        });
        page.many("job_completed_total", "", ["job_type", "status"], completed);
        page.families(self.took.clone());
        let notified = [([self.channel.as_str()], self.notifications)];
        page.many("job_notification_received_total", "", ["channel"], notified);
        page.one("job_poll_scanned_total", "", self.polls);
        page.text()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jobs::event::About;
    use crate::jobs::id::JobId;

    #[test]
    fn figures_have_the_names_and_labels_that_dashboards_expect() {
        let figures = Figures::default();
        let job =
            About { id: JobId(1), kind: "enrich\"ment".into(), queue: "default".into(), attempt: 1, item_id: None };
        let worker = Arc::from("w1");
        figures.count(&JobEvent::Claimed { job: job.clone(), worker, waited: Duration::ZERO });
        figures.count(&JobEvent::Completed { job: job.clone(), took: Duration::from_millis(20) });
        let (code, message, took) = ("c".to_owned(), "m".to_owned(), Duration::ZERO);
        figures.count(&JobEvent::Failed { job, code, message, state: State::Dead, took });
        figures.count(&JobEvent::Notified);

        let text = figures.read("reveille_1").prometheus(&BTreeMap::from([("enrichment".to_owned(), 3)]));

        for line in [
            "job_queue_depth{job_type=\"enrichment\"} 3",
            "job_claimed_total{job_type=\"enrich\\\"ment\",worker_id=\"w1\"} 1",
            "job_completed_total{job_type=\"enrich\\\"ment\",status=\"success\"} 1",
            "job_completed_total{job_type=\"enrich\\\"ment\",status=\"dead\"} 1",
            "job_processing_seconds_bucket{job_type=\"enrich\\\"ment\",le=\"0.05\"} 2",
            "job_processing_seconds_count{job_type=\"enrich\\\"ment\"} 2",
            "job_notification_received_total{channel=\"reveille_1\"} 1",
            "job_poll_scanned_total 0",
        ] {
            assert!(text.lines().any(|there| there == line), "{line} is not in\n{text}");
        }
    }
}
