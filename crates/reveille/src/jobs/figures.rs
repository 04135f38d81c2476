//! What happened to jobs in this process, counted, under the names of seed 003.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::event::JobEvent;
use super::lifecycle::State;

/// Kinds beyond this many are counted together.
const KINDS_MAX: usize = 1000;
const OTHERS: &str = "other";
/// The upper bounds of the buckets of `job_processing_seconds`.
const BUCKETS: [f64; 12] = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 60.0, 300.0, 1800.0];

/// What was counted.
#[derive(Debug, Default)]
pub(super) struct Figures {
    kinds: Mutex<HashMap<Arc<str>, Kind>>,
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
    /// How many attempts took at most as long as each bucket says.
    buckets: [u64; BUCKETS.len()],
    /// How many attempts were timed, and their seconds together.
    timed: (u64, f64),
}

/// A reading of the figures.
#[derive(Debug, Default, Clone, PartialEq)]
#[non_exhaustive]
pub struct JobsFigures {
    /// By kind of job.
    pub kinds: BTreeMap<String, Kind>,
    /// Hints that arrived from other processes.
    pub notifications: u64,
    /// Looks that nobody had asked for.
    pub polls: u64,
    /// The channel on which hints arrive.
    pub channel: String,
}

impl Figures {
    pub(super) fn count(&self, event: &JobEvent) {
        match event {
            JobEvent::Claimed { job, worker, .. } => {
                let mut kinds = self.kinds();
                let claimed = &mut of(&mut kinds, &job.kind).claimed;
                match claimed.get_mut(&**worker) {
                    Some(count) => *count += 1,
                    None => _ = claimed.insert(worker.to_string(), 1),
                }
            }
            JobEvent::Completed { job, took } => {
                let mut kinds = self.kinds();
                let kind = of(&mut kinds, &job.kind);
                kind.success += 1;
                kind.time(took.as_secs_f64());
            }
            JobEvent::Failed { job, state, took, .. } => {
                let mut kinds = self.kinds();
                let kind = of(&mut kinds, &job.kind);
                if *state == State::Scheduled {
                    kind.failed += 1;
                } else {
                    kind.dead += 1;
                }
                kind.time(took.as_secs_f64());
            }
            // Nobody knows how long it took: whoever ran it is gone.
            JobEvent::Ended { job, state: State::Dead } => of(&mut self.kinds(), &job.kind).dead += 1,
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
        }
    }

    fn kinds(&self) -> MutexGuard<'_, HashMap<Arc<str>, Kind>> {
        self.kinds.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn of<'k>(kinds: &'k mut HashMap<Arc<str>, Kind>, name: &Arc<str>) -> &'k mut Kind {
    let name = if kinds.len() < KINDS_MAX || kinds.contains_key(name) { Arc::clone(name) } else { Arc::from(OTHERS) };
    kinds.entry(name).or_default()
}

impl Kind {
    fn time(&mut self, seconds: f64) {
        for (bucket, bound) in self.buckets.iter_mut().zip(BUCKETS) {
            *bucket += u64::from(seconds <= bound);
        }
        self.timed = (self.timed.0 + 1, self.timed.1 + seconds);
    }
}

impl JobsFigures {
    /// As Prometheus reads it, with the depths by kind that [`Jobs::depths`](super::Jobs::depths) asked the database for.
    pub fn prometheus(&self, depths: &BTreeMap<String, u64>) -> String {
        let mut text = String::new();
        text.push_str("# TYPE job_queue_depth gauge\n");
        for (kind, depth) in depths {
            let _ = writeln!(text, "job_queue_depth{{job_type={}}} {depth}", quoted(kind));
        }
        text.push_str("# TYPE job_claimed_total counter\n");
        for (name, kind) in &self.kinds {
            for (worker, count) in &kind.claimed {
                let (name, worker) = (quoted(name), quoted(worker));
                let _ = writeln!(text, "job_claimed_total{{job_type={name},worker_id={worker}}} {count}");
            }
        }
        text.push_str("# TYPE job_completed_total counter\n");
        for (name, kind) in &self.kinds {
            for (status, count) in [("success", kind.success), ("failed", kind.failed), ("dead", kind.dead)] {
                let _ = writeln!(text, "job_completed_total{{job_type={},status=\"{status}\"}} {count}", quoted(name));
            }
        }
        text.push_str("# TYPE job_processing_seconds histogram\n");
        for (name, kind) in &self.kinds {
            let name = quoted(name);
            for (bucket, bound) in kind.buckets.iter().zip(BUCKETS) {
                let _ = writeln!(text, "job_processing_seconds_bucket{{job_type={name},le=\"{bound}\"}} {bucket}");
            }
            let (count, sum) = kind.timed;
            let _ = writeln!(text, "job_processing_seconds_bucket{{job_type={name},le=\"+Inf\"}} {count}");
            let _ = writeln!(text, "job_processing_seconds_sum{{job_type={name}}} {sum}");
            let _ = writeln!(text, "job_processing_seconds_count{{job_type={name}}} {count}");
        }
        text.push_str("# TYPE job_notification_received_total counter\n");
        let channel = quoted(&self.channel);
        let _ = writeln!(text, "job_notification_received_total{{channel={channel}}} {}", self.notifications);
        text.push_str("# TYPE job_poll_scanned_total counter\n");
        let _ = writeln!(text, "job_poll_scanned_total {}", self.polls);
        text
    }
}

/// A label's value. Kinds are chosen by users.
fn quoted(value: &str) -> String {
    format!("\"{}\"", value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n"))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::jobs::event::About;
    use crate::jobs::id::JobId;

    #[test]
    fn figures_have_the_names_and_labels_of_the_seed() {
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
