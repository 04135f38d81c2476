//! What an operator should know about a database that works.

use std::fmt;

/// Something that works, but may not be what was meant. Its text is one sentence and a remedy.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Warning {
    /// Commits do not reach the disk.
    FsyncOff,
    /// A page torn by a power cut cannot be restored.
    FullPageWritesOff,
    /// Commits are answered before they are written.
    AsynchronousCommit,
    /// Commits do not wait for the standbys that are there for it.
    LocalCommit,
    /// TLS that does not verify the server.
    UnverifiedTls,
    /// A PostgreSQL newer than our tests.
    NewerPostgres {
        /// The version the server reports.
        version: String,
    },
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::FsyncOff => f.write_str(
                "fsync is off: a crash of the machine can lose or damage everything; switch it on unless this is a test",
            ),
            Self::FullPageWritesOff => f.write_str(
                "full_page_writes is off: a power cut can damage pages beyond repair; switch it on unless the \
                 file system writes whole pages",
            ),
            Self::AsynchronousCommit => f.write_str(
                "synchronous_commit is off: a crash loses the last acknowledged work; set it to on for our role",
            ),
            Self::LocalCommit => f.write_str(
                "synchronous_commit is local although synchronous_standby_names is set: a failover loses acknowledged \
                 work; set it to on for our role",
            ),
            Self::UnverifiedTls => f.write_str(
                "TLS does not verify the server: an attacker in between can read and change everything; set \
                 sslmode=verify-full",
            ),
            Self::NewerPostgres { version } => {
                write!(f, "PostgreSQL {version} is newer than the versions tested, 15 to 18; check for a newer Reveille")
            }
        }
    }
}
