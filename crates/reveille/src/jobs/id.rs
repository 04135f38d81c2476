//! The id of a job, and the token that proves that one holds it.

use std::fmt;
use std::str::FromStr;

use super::error::JobsError;

/// The id of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobId(pub i64);

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for JobId {
    type Err = JobsError;

    fn from_str(text: &str) -> Result<Self, JobsError> {
        let number = text.parse().ok().filter(|number| *number > 0);
        number.map(Self).ok_or_else(|| JobsError::Refused(format!("this is no job's id: \"{text}\"")))
    }
}

/// One claim of a job. Proves that its holder holds the job, until the job is claimed again or
/// ends. As text it is the token that the SQL functions `complete`, `fail` and `snooze` take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct JobToken {
    /// Which job.
    pub id: JobId,
    /// The number of this claim of the job; rises for ever.
    pub epoch: i32,
    /// Random, so that a claim that a crash undid is not mistaken for the one made instead.
    pub(super) nonce: i64,
}

impl fmt::Display for JobToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.id, self.epoch, self.nonce)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_a_positive_number() {
        assert_eq!("7".parse::<JobId>().unwrap(), JobId(7));
        for text in ["", "x", "0", "-1", "9999999999999999999"] {
            assert!(text.parse::<JobId>().is_err(), "{text}");
        }
    }
}
