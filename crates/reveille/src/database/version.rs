//! Which PostgreSQL we stand on.
//!
//! A pure judgement of the text a server reports as `server_version`. Next: [`super::connector`],
//! which asks.

use std::fmt;

use super::error::DatabaseError;

/// The oldest major version whose features we use; 14 is past its end of life.
const OLDEST: u32 = 15;
/// The newest major version our tests run on.
const NEWEST: u32 = 18;

/// A PostgreSQL version as the server reports it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerVersion {
    text: String,
    major: u32,
}

/// Whether we run on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Support {
    Tested,
    NewerThanTested,
    TooOld,
}

impl ServerVersion {
    /// Read `15.18 (Debian 15.18-0+deb12u1)`, `17.0` or `19devel`. `None` when no number comes
    /// first.
    pub(crate) fn parse(reported: &str) -> Option<Self> {
        let text = reported.split_whitespace().next()?;
        let digits = text.split(|c: char| !c.is_ascii_digit()).next()?;
        Some(Self { text: text.to_owned(), major: digits.parse().ok()? })
    }

    /// The major version, as 15 in 15.18.
    pub fn major(&self) -> u32 {
        self.major
    }

    /// The same version, or why we do not run on it.
    pub(crate) fn accepted(self, server: &str) -> Result<Self, DatabaseError> {
        if self.support() == Support::TooOld {
            return Err(DatabaseError::UnsupportedVersion { server: server.to_owned(), version: self.text });
        }
        Ok(self)
    }

    pub(crate) fn support(&self) -> Support {
        match self.major {
            ..OLDEST => Support::TooOld,
            OLDEST..=NEWEST => Support::Tested,
            _ => Support::NewerThanTested,
        }
    }
}

impl fmt::Display for ServerVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn support(reported: &str) -> Support {
        ServerVersion::parse(reported).unwrap().support()
    }

    #[test]
    fn fifteen_to_eighteen_are_tested_newer_is_tolerated_older_is_refused() {
        assert_eq!(support("14.13"), Support::TooOld);
        assert_eq!(support("9.6.24"), Support::TooOld);
        assert_eq!(support("15.18 (Debian 15.18-0+deb12u1)"), Support::Tested);
        assert_eq!(support("18.4"), Support::Tested);
        assert_eq!(support("19devel"), Support::NewerThanTested);
    }

    #[test]
    fn an_old_server_is_refused_in_words() {
        let error = ServerVersion::parse("14.13").unwrap().accepted("db:5432").unwrap_err();

        assert_eq!(error.to_string(), "PostgreSQL 14.13 at db:5432 is too old: Reveille needs version 15 to 18");
        assert!(!error.is_transient());
    }

    #[test]
    fn a_version_without_a_number_is_no_version() {
        assert_eq!(ServerVersion::parse("unknown"), None);
        assert_eq!(ServerVersion::parse(""), None);
    }
}
