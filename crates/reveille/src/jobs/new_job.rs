//! A job as its producer describes it.
//!
//! Checked by [`NewJob::check`] before anything is sent, in words; the SQL functions for other
//! languages check the same.

use std::time::{Duration, SystemTime};

use serde::Serialize;

use super::backoff::Backoff;
use super::error::JobsError;
use super::unique::Unique;

/// Indexed, with a time and a number.
const NAME_BYTES_MAX: usize = 128;
const DELAY_MAX: Duration = Duration::from_secs(100 * 366 * 24 * 3600);
/// Earlier times count as the beginning of the year 2000: claims read from 1970 on.
const EARLIEST: Duration = Duration::from_secs(946_684_800);
/// The beginning of the year 2200. A later time is a mistake, and PostgreSQL cannot reckon with its
/// infinity before version 17.
const LATEST: Duration = Duration::from_secs(7_258_118_400);
/// The queue of a job that names none.
pub(super) const DEFAULT_QUEUE: &str = "default";

/// What to do, and how.
#[derive(Debug, Clone)]
#[must_use = "it does nothing until it is enqueued"]
pub struct NewJob {
    pub(super) kind: String,
    pub(super) args: Vec<u8>,
    pub(super) queue: String,
    pub(super) priority: i16,
    pub(super) run_at: Option<SystemTime>,
    pub(super) delay: Option<Duration>,
    pub(super) max_attempts: i16,
    pub(super) timeout: Option<Duration>,
    pub(super) backoff: Backoff,
    pub(super) tags: Vec<String>,
    pub(super) metadata: Option<Vec<u8>>,
    pub(super) unique: Option<Unique>,
}

impl NewJob {
    /// A job of that kind, with these arguments for its handler.
    pub fn new(kind: impl Into<String>, args: &impl Serialize) -> Result<Self, JobsError> {
        let args = serde_json::to_vec(args).map_err(|source| JobsError::Json { what: "the arguments", source })?;
        Ok(Self::of(kind.into(), args))
    }

    /// The same with arguments that are JSON already; they are kept byte for byte.
    pub fn raw(kind: impl Into<String>, args: impl Into<Vec<u8>>) -> Result<Self, JobsError> {
        let args = args.into();
        serde_json::from_slice::<serde::de::IgnoredAny>(&args)
            .map_err(|source| JobsError::Json { what: "the arguments", source })?;
        Ok(Self::of(kind.into(), args))
    }

    fn of(kind: String, args: Vec<u8>) -> Self {
        Self {
            kind,
            args,
            queue: DEFAULT_QUEUE.to_owned(),
            priority: 5,
            run_at: None,
            delay: None,
            max_attempts: 4,
            timeout: None,
            backoff: Backoff::default(),
            tags: Vec::new(),
            metadata: None,
            unique: None,
        }
    }

    /// Which workers may take it. Default: `default`. 1 to 128 bytes.
    pub fn queue(mut self, name: impl Into<String>) -> Self {
        self.queue = name.into();
        self
    }

    /// Which jobs of a queue come first: 0 before 9. Default: 5.
    pub fn priority(mut self, priority: i16) -> Self {
        self.priority = priority;
        self
    }

    /// When it may run, by the database's clock. Default: at once. A time that has passed counts as
    /// one that has just come, but before those that came later; one from the year 2200 on is
    /// refused, and so is one beside a [`delay`](Self::delay).
    pub fn run_at(mut self, at: SystemTime) -> Self {
        self.run_at = Some(at);
        self
    }

    /// In how long it may run. Default: zero. At most 100 years, and not beside a
    /// [`run_at`](Self::run_at).
    pub fn delay(mut self, delay: Duration) -> Self {
        self.delay = Some(delay);
        self
    }

    /// How often it is tried before it is dead. Default: 4. 1 to 1000.
    pub fn max_attempts(mut self, attempts: i16) -> Self {
        self.max_attempts = attempts;
        self
    }

    /// How long one attempt may take before it is given up as failed. Default: no limit; zero and
    /// more than 100 years are refused.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// The pauses between attempts. Default: [`Backoff::default`].
    pub fn backoff(mut self, backoff: Backoff) -> Self {
        self.backoff = backoff;
        self
    }

    /// Words to find it by. Default: none. At most 32, of at most 128 bytes, without line breaks.
    pub fn tags<T: Into<String>>(mut self, tags: impl IntoIterator<Item = T>) -> Self {
        self.tags = tags.into_iter().map(Into::into).collect();
        self
    }

    /// Further data to keep with it, as a JSON object; an `item_id` in it appears in every log
    /// line. Default: none.
    pub fn metadata(mut self, metadata: &impl Serialize) -> Result<Self, JobsError> {
        let bytes = serde_json::to_vec(metadata).map_err(|source| JobsError::Json { what: "the metadata", source })?;
        self.metadata = Some(bytes);
        Ok(self)
    }

    /// Which other jobs it keeps out. Default: none.
    pub fn unique(mut self, unique: Unique) -> Self {
        self.unique = Some(unique);
        self
    }

    /// The time at which it may run, if it has one, as the tables have it.
    pub(super) fn due_at(&self) -> Option<SystemTime> {
        self.run_at.map(|at| at.max(SystemTime::UNIX_EPOCH + EARLIEST))
    }

    /// About how many bytes it takes on its way.
    pub(super) fn weight(&self) -> usize {
        self.args.len() + self.metadata.as_ref().map_or(0, Vec::len) + 256
    }

    pub(super) fn check(&self, args_bytes_max: usize) -> Result<(), JobsError> {
        check_name("the job's kind", &self.kind)?;
        check_name("the queue's name", &self.queue)?;
        for (what, bytes) in
            [("the arguments", self.args.len()), ("the metadata", self.metadata.as_ref().map_or(0, Vec::len))]
        {
            if bytes > args_bytes_max {
                return Err(JobsError::TooLarge { what, bytes, limit: args_bytes_max });
            }
        }
        let wrong = |text: String| Err(JobsError::Refused(text));
        if !(0..=9).contains(&self.priority) {
            return wrong(format!("the priority must be 0 to 9, not {}", self.priority));
        }
        if !(1..=1000).contains(&self.max_attempts) {
            return wrong(format!("the number of attempts must be 1 to 1000, not {}", self.max_attempts));
        }
        if self.timeout.is_some_and(|timeout| timeout.is_zero()) {
            return wrong("the timeout must be more than 0 s".to_owned());
        }
        let window = self.unique.as_ref().and_then(|unique| unique.window);
        for (what, time) in [("delay", self.delay), ("timeout", self.timeout), ("unique window", window)] {
            if time.is_some_and(|time| time > DELAY_MAX) {
                return wrong(format!("the {what} must be at most 100 years"));
            }
        }
        if self.run_at.is_some() && self.delay.is_some() {
            return wrong("a job has a run_at or a delay, not both".to_owned());
        }
        if self.run_at.is_some_and(|at| at >= SystemTime::UNIX_EPOCH + LATEST) {
            return wrong("the time must be before the year 2200".to_owned());
        }
        let is_tag = |tag: &String| !tag.is_empty() && tag.len() <= NAME_BYTES_MAX && !tag.contains(['\n', '\0']);
        if self.tags.len() > 32 || !self.tags.iter().all(is_tag) {
            return wrong("a job has at most 32 tags of 1 to 128 bytes, without line breaks".to_owned());
        }
        let key = self.unique.as_ref().and_then(|unique| unique.key.as_ref());
        if key.is_some_and(|key| key.contains('\0')) {
            return wrong("the unique key contains a NUL character".to_owned());
        }
        Ok(())
    }
}

/// Whether it can be the name of a kind or queue.
pub(super) fn check_name(what: &str, name: &str) -> Result<(), JobsError> {
    let fault = match name {
        "" => "is empty",
        _ if name.len() > NAME_BYTES_MAX => "is longer than 128 bytes",
        _ if name.contains('\0') => "contains a NUL character",
        _ => return Ok(()),
    };
    Err(JobsError::Refused(format!("{what} {fault}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(job: &NewJob) -> String {
        job.check(100).unwrap_err().to_string()
    }

    #[test]
    fn what_cannot_be_a_job_is_refused_in_words() {
        let job = || NewJob::new("k", &1).unwrap();

        assert!(job().check(100).is_ok());
        assert_eq!(refused(&NewJob::new("", &1).unwrap()), "the job's kind is empty");
        assert_eq!(refused(&job().queue("")), "the queue's name is empty");
        assert_eq!(refused(&job().queue("x".repeat(129))), "the queue's name is longer than 128 bytes");
        assert_eq!(refused(&job().priority(10)), "the priority must be 0 to 9, not 10");
        assert_eq!(refused(&job().max_attempts(0)), "the number of attempts must be 1 to 1000, not 0");
        assert_eq!(refused(&job().timeout(Duration::ZERO)), "the timeout must be more than 0 s");
        assert_eq!(refused(&job().timeout(Duration::MAX)), "the timeout must be at most 100 years");
        assert_eq!(refused(&job().delay(Duration::MAX)), "the delay must be at most 100 years");
        assert_eq!(refused(&job().run_at(SystemTime::UNIX_EPOCH + LATEST)), "the time must be before the year 2200");
        let both = job().run_at(SystemTime::UNIX_EPOCH).delay(Duration::ZERO);
        assert_eq!(refused(&both), "a job has a run_at or a delay, not both");
        let forever = Unique::by_args().window(Duration::MAX);
        assert_eq!(refused(&job().unique(forever)), "the unique window must be at most 100 years");
        assert!(refused(&job().tags(["a\nb"])).contains("tags"));
        let large = NewJob::new("k", &"x".repeat(99)).unwrap();
        assert_eq!(refused(&large), "the arguments have 101 bytes, more than the 100 allowed");
    }

    #[test]
    fn arguments_that_are_no_json_are_refused() {
        assert_eq!(NewJob::raw("k", "{").unwrap_err().to_string(), "the arguments are no JSON");
        assert_eq!(NewJob::raw("k", "{ \"a\": 1 }").unwrap().args, b"{ \"a\": 1 }");
    }
}
