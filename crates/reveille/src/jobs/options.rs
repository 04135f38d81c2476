//! What a caller chooses about jobs.

mod environment;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use reveille_wake::{Observer, PollModeOptions};

use super::event::JobEvent;

/// Called with everything that happens to jobs in this process.
pub type JobObserver = Arc<dyn Fn(&JobEvent) + Send + Sync>;

/// What a caller chooses about jobs. All processes of a database should choose alike.
#[derive(Clone)]
pub struct JobsOptions {
    pub(super) args_bytes_max: usize,
    pub(super) keep_done: Duration,
    pub(super) keep_dead: Option<Duration>,
    pub(super) notify: bool,
    pub(super) fallback_interval: Option<Duration>,
    pub(super) upkeep_interval: Duration,
    pub(super) poll_mode: PollModeOptions,
    pub(super) observer: Option<JobObserver>,
    pub(super) wake_observer: Option<Arc<dyn Observer>>,
}

impl Default for JobsOptions {
    fn default() -> Self {
        Self {
            args_bytes_max: 1024 * 1024,
            keep_done: Duration::from_secs(24 * 3600),
            keep_dead: None,
            notify: true,
            fallback_interval: None,
            upkeep_interval: Duration::from_secs(300),
            poll_mode: PollModeOptions::DEFAULT,
            observer: None,
            wake_observer: None,
        }
    }
}

impl JobsOptions {
    /// How many bytes the arguments of a job may have, and its metadata, and its result. Default: 1
    /// MiB; at most 16 MiB.
    #[must_use]
    pub fn args_bytes_max(mut self, bytes: usize) -> Self {
        self.args_bytes_max = bytes.min(16 * 1024 * 1024);
        self
    }

    /// How long jobs are kept that are done or cancelled. Default: 24 h. Zero: those that are done
    /// leave nothing behind.
    #[must_use]
    pub fn keep_done(mut self, time: Duration) -> Self {
        self.keep_done = time;
        self
    }

    /// How long dead jobs are kept. Default: until they are redriven or deleted.
    #[must_use]
    pub fn keep_dead(mut self, time: Duration) -> Self {
        self.keep_dead = Some(time);
        self
    }

    /// Whether notifications are used at all. Without them this process neither sends any for jobs
    /// (enqueues, retries, ends of leases, cancelling) nor listens for them, its heartbeat's own
    /// among them: workers claim every [`fallback_interval`](Self::fallback_interval), and notice a
    /// cancellation with the next renewal, after a third of the lease. Default: yes.
    #[must_use]
    pub fn notify(mut self, notify: bool) -> Self {
        self.notify = notify;
        self
    }

    /// How often a worker claims without having been woken: for jobs of quiet queues, and for those
    /// whose producers do not notify. While notifications are on nothing is lost without it: the
    /// heartbeat finds due jobs every 12 s. Default: 2 s for queues that are quiet, or for all when
    /// `notify` is off; else 5 min.
    #[must_use]
    pub fn fallback_interval(mut self, interval: Duration) -> Self {
        self.fallback_interval = Some(interval.max(Duration::from_millis(10)));
        self
    }

    /// How often a process with a worker deletes jobs that need not be kept. Default: 5 min; zero
    /// leaves it to other processes.
    #[must_use]
    pub fn upkeep_interval(mut self, interval: Duration) -> Self {
        self.upkeep_interval = interval;
        self
    }

    /// When and how often workers claim while hints cannot be relied on. Default:
    /// [`PollModeOptions::DEFAULT`]. A worker refuses to start with a shortest interval of zero.
    #[must_use]
    pub fn poll_mode(mut self, poll_mode: PollModeOptions) -> Self {
        self.poll_mode = poll_mode;
        self
    }

    /// Called with everything that happens to jobs, where it happens, so it must not block.
    /// Default: none.
    #[must_use]
    pub fn observer(mut self, observer: JobObserver) -> Self {
        self.observer = Some(observer);
        self
    }

    /// Called with wake-ups, claim rounds and changes of the link. Default: none.
    #[must_use]
    pub fn wake_observer(mut self, observer: Arc<dyn Observer>) -> Self {
        self.wake_observer = Some(observer);
        self
    }

    /// How often all queues are polled.
    pub(super) fn everywhere(&self) -> Duration {
        let usual = if self.notify { Duration::from_secs(300) } else { QUIET };
        self.fallback_interval.unwrap_or(usual)
    }

    /// How often a quiet queue is polled.
    pub(super) fn quiet(&self) -> Duration {
        self.fallback_interval.unwrap_or(QUIET)
    }
}

const QUIET: Duration = Duration::from_secs(2);

impl fmt::Debug for JobsOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JobsOptions")
            .field("args_bytes_max", &self.args_bytes_max)
            .field("keep_done", &self.keep_done)
            .field("keep_dead", &self.keep_dead)
            .field("notify", &self.notify)
            .field("fallback_interval", &self.fallback_interval)
            .finish_non_exhaustive()
    }
}
