//! How long a job waits between its attempts. SQL computes the pauses where it records the failure,
//! so that every language gets the same ones; here they are only described and checked.

use std::fmt;
use std::time::Duration;

use super::error::JobsError;

/// More pauses than this are no plan.
const PAUSES_MAX: usize = 100;
/// A longer pause is a mistake.
const LONGEST: Duration = Duration::from_secs(366 * 24 * 3600);

/// The pauses between a job's attempts. Default: none, 30 s, 5 min, and 5 min for every further
/// one.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Backoff(Option<String>);

impl Backoff {
    /// The pause after each failure; the last one repeats.
    pub fn list(pauses: impl IntoIterator<Item = Duration>) -> Result<Self, JobsError> {
        let pauses: Vec<Duration> = pauses.into_iter().collect();
        if pauses.is_empty() || pauses.len() > PAUSES_MAX || pauses.iter().any(|pause| *pause > LONGEST) {
            return Err(JobsError::Refused("a backoff has 1 to 100 pauses of at most a year each".to_owned()));
        }
        let pauses: Vec<String> = pauses.iter().map(|pause| pause.as_secs_f64().to_string()).collect();
        Ok(Self(Some(format!("list:{}", pauses.join(",")))))
    }

    /// A random pause up to `first`, up to twice that after the second failure, and so on, but
    /// never more than `longest`. Jobs that failed together do not come back together.
    pub fn exponential(first: Duration, longest: Duration) -> Result<Self, JobsError> {
        if first.is_zero() || longest < first || longest > LONGEST {
            return Err(JobsError::Refused("a backoff begins above zero and ends within a year".to_owned()));
        }
        Ok(Self(Some(format!("exponential:{}:{}", first.as_secs_f64(), longest.as_secs_f64()))))
    }

    pub(super) fn text(&self) -> Option<&str> {
        self.0.as_deref()
    }
}

impl fmt::Display for Backoff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.as_deref().unwrap_or("list:0,30,300"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_are_spelled_as_the_database_reads_them() {
        let list = Backoff::list([Duration::ZERO, Duration::from_millis(1500)]).unwrap();
        let exponential = Backoff::exponential(Duration::from_secs(1), Duration::from_secs(60)).unwrap();

        assert_eq!(list.text(), Some("list:0,1.5"));
        assert_eq!(exponential.text(), Some("exponential:1:60"));
        assert_eq!(Backoff::default().text(), None);
    }

    #[test]
    fn what_is_no_backoff_is_refused() {
        assert!(Backoff::list([]).is_err());
        assert!(Backoff::exponential(Duration::ZERO, Duration::from_secs(1)).is_err());
        assert!(Backoff::exponential(Duration::from_secs(2), Duration::from_secs(1)).is_err());
    }
}
