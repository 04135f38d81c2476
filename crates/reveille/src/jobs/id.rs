//! What names a job, and what proves that one holds it.

use std::fmt;
use std::str::FromStr;

use super::error::JobsError;

/// A job.
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

/// One claim of a job: whoever presents it holds the job, until somebody else claims it. As text it
/// is what the SQL functions `complete`, `fail` and `snooze` take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct JobToken {
    /// Which job.
    pub id: JobId,
    /// Its how-manieth claim; rises for ever.
    pub epoch: i32,
    /// Random: a claim that a crash undid is not mistaken for the one made instead.
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
