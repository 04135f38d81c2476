//! Trying again, a bounded number of times and with jitter.
//!
//! Only [`Idempotent`] work may be tried again: the caller states that doing it twice is the same
//! as doing it once. Only transient errors are tried again; the last error is returned as it is.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::error::DatabaseError;
use super::outage::warn_unless_away;
use super::pauses::Pauses;

/// Work that may be done twice: a read, or a write that a second time changes nothing.
#[derive(Debug, Clone, Copy)]
pub struct Idempotent<F>(pub F);

/// How often and how fast to try again.
#[derive(Debug, Clone, Copy)]
pub struct Retry {
    attempts: u32,
    pauses: Pauses,
    deadline: Option<Instant>,
}

impl Default for Retry {
    /// Five attempts within about three seconds, first pause up to 50 ms.
    fn default() -> Self {
        let pauses = Pauses::new(Duration::from_millis(50), Duration::from_secs(2));
        Self { attempts: 5, pauses, deadline: None }
    }
}

impl Retry {
    /// How often to try in all.
    ///
    /// Default: 5 attempts. Zero means one.
    #[must_use]
    pub fn attempts(mut self, attempts: u32) -> Self {
        self.attempts = attempts;
        self
    }

    /// The longest pause after the first failure; it doubles with each further one up to `longest`.
    ///
    /// Default: 50 ms and 2 s. Zero: no pause.
    #[must_use]
    pub fn pauses(mut self, first: Duration, longest: Duration) -> Self {
        self.pauses = Pauses::new(first, longest);
        self
    }

    /// Do not begin an attempt after this instant.
    ///
    /// Default: none, the attempts alone are the limit.
    #[must_use]
    pub fn until(mut self, deadline: Instant) -> Self {
        self.deadline = Some(deadline);
        self
    }

    /// Do the work until it succeeds, fails for good, or the attempts or the time are used up.
    pub async fn run<T, F, W>(mut self, mut work: Idempotent<F>) -> Result<T, DatabaseError>
    where
        F: FnMut() -> W,
        W: Future<Output = Result<T, DatabaseError>>,
    {
        let mut attempt = 1;
        loop {
            let error = match (work.0)().await {
                Ok(value) => return Ok(value),
                Err(error) => error,
            };
            let pause = self.pauses.next();
            let in_time = self.deadline.is_none_or(|deadline| Instant::now() + pause < deadline);
            if !error.is_transient() || attempt >= self.attempts || !in_time {
                return Err(error);
            }
            warn_unless_away!(&error, attempt, retry_in = ?pause, %error, "trying again");
            sleep(pause).await;
            attempt += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::ready;

    use super::*;

    fn transient() -> DatabaseError {
        DatabaseError::NotCommitted { server: "db".into() }
    }

    #[tokio::test(start_paused = true)]
    async fn transient_errors_are_tried_again_until_they_pass() {
        let mut tries = 0;
        let result = Retry::default()
            .run(Idempotent(|| {
                tries += 1;
                ready(if tries < 3 { Err(transient()) } else { Ok(tries) })
            }))
            .await;

        assert_eq!(result.unwrap(), 3);
    }

    #[tokio::test(start_paused = true)]
    async fn the_attempts_have_an_end() {
        let mut tries = 0;
        let result: Result<(), _> = Retry::default()
            .run(Idempotent(|| {
                tries += 1;
                ready(Err(transient()))
            }))
            .await;

        assert!(result.is_err());
        assert_eq!(tries, 5);
    }

    #[tokio::test(start_paused = true)]
    async fn no_attempt_begins_after_the_deadline() {
        let begun = Instant::now();
        let retry = Retry::default().attempts(1000).until(begun + Duration::from_secs(3));
        let result: Result<(), _> = retry.run(Idempotent(|| ready(Err(transient())))).await;

        assert!(result.is_err());
        assert!(begun.elapsed() <= Duration::from_secs(3));
    }

    #[tokio::test]
    async fn lasting_errors_are_not_tried_again() {
        let mut tries = 0;
        let result: Result<(), _> = Retry::default()
            .run(Idempotent(|| {
                tries += 1;
                ready(Err(DatabaseError::Closed))
            }))
            .await;

        assert!(result.is_err());
        assert_eq!(tries, 1);
    }
}
