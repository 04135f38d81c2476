//! The servers tests run on: one shared by all, and one of its own for a test that must break it.

use std::fs::{self, DirBuilder};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, geteuid};
use reveille_embedded::{Durability, Embedded, EmbeddedOptions};

use crate::supervisor::{environment, program};

/// Long enough for the next test program of a run to find the server up.
const SHARED_LINGER: Duration = Duration::from_secs(10);
const PATIENCE: Duration = Duration::from_secs(60);

/// The server all tests of this user share, started by the first and stopped after the last.
pub(crate) fn shared() -> &'static Embedded {
    static SHARED: OnceLock<Embedded> = OnceLock::new();
    SHARED.get_or_init(|| {
        let dir = shared_directory();
        make_own(&dir);
        let options = options(&dir).linger(SHARED_LINGER).setting("max_connections", "400");
        Embedded::start(&options).unwrap_or_else(|error| panic!("no PostgreSQL for tests: {}", error.sentence()))
    })
}

/// One per user and choice of binaries, so that runs on two versions do not meet.
fn shared_directory() -> PathBuf {
    let chosen = environment("REVEILLE_PG_BIN").map(|bin| {
        let mut hasher = DefaultHasher::new();
        bin.hash(&mut hasher);
        format!("-{:08x}", hasher.finish() >> 32)
    });
    std::env::temp_dir().join(format!("reveille-test-{}{}", geteuid(), chosen.unwrap_or_default()))
}

/// Makes the directory, or checks that it is ours: all users may write to the temporary directory.
fn make_own(dir: &Path) {
    let mode = if geteuid().is_root() { 0o711 } else { 0o700 };
    let _ = DirBuilder::new().mode(mode).create(dir);
    let found = fs::symlink_metadata(dir).expect("the temporary directory can be written");
    assert!(found.is_dir() && found.uid() == geteuid().as_raw(), "{} is not a directory of this user", dir.display());
}

fn options(dir: &Path) -> EmbeddedOptions {
    let options = EmbeddedOptions::from_environment(environment, [program()]);
    let options = options.unwrap_or_else(|error| panic!("no options for a test server: {}", error.sentence()));
    options.data_dir(dir).durability(Durability::Disposable).start_timeout(PATIENCE)
}

/// A server of a test's own, in a directory that goes with it.
#[derive(Debug)]
pub struct TestCluster {
    embedded: Option<Embedded>,
    dir: PathBuf,
}

/// How a test ends a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shutdown {
    /// Sessions are ended, everything is written: an administrator's restart.
    Fast,
    /// The processes are gone at once: a crash. What was committed comes back from the log if the
    /// server is durable.
    Kill,
}

impl TestCluster {
    /// Starts a server with the usual test options, changed by `choose`.
    ///
    /// # Panics
    /// When it does not start.
    pub fn start(choose: impl FnOnce(EmbeddedOptions) -> EmbeddedOptions) -> Self {
        let unique = format!("reveille-own-{}-{:08x}", std::process::id(), crate::database::random());
        let dir = std::env::temp_dir().join(unique);
        make_own(&dir);
        let embedded = Embedded::start(&choose(options(&dir)));
        let embedded = embedded.unwrap_or_else(|error| panic!("no PostgreSQL for this test: {}", error.sentence()));
        Self { embedded: Some(embedded), dir }
    }

    /// The handle on the server.
    ///
    /// # Panics
    /// Never: it is there until the cluster is dropped.
    pub fn embedded(&self) -> &Embedded {
        self.embedded.as_ref().expect("a cluster holds its server until it is dropped")
    }

    /// A connection string for `database`, as the superuser, over the Unix socket.
    pub fn url(&self, database: &str) -> String {
        self.embedded().connection_string(database)
    }

    /// Ends the server and waits until the supervisor has brought it back.
    ///
    /// # Panics
    /// When it does not come back.
    pub fn restart(&self, how: Shutdown) {
        let before = self.postmaster().expect("the server runs");
        let signal = match how {
            Shutdown::Fast => Signal::SIGINT,
            Shutdown::Kill => Signal::SIGKILL,
        };
        kill(before, signal).expect("the server can be signalled");
        let deadline = Instant::now() + PATIENCE;
        while self.postmaster().is_none_or(|now| now == before) {
            assert!(Instant::now() < deadline, "the server did not come back");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// The process id of the server when it is ready.
    fn postmaster(&self) -> Option<Pid> {
        let text = fs::read_to_string(self.embedded().data_dir().join("pg/postmaster.pid")).ok()?;
        let mut lines = text.lines();
        let pid = lines.next()?.trim().parse().ok()?;
        let status = lines.nth(6)?.trim();
        ["ready", "standby"].contains(&status).then(|| Pid::from_raw(pid))
    }
}

impl Drop for TestCluster {
    fn drop(&mut self) {
        if let Some(embedded) = self.embedded.take() {
            let log = embedded.log();
            let _ = embedded.close(PATIENCE);
            if std::thread::panicking() {
                eprintln!("the server's log is kept: {}", log.display());
                return;
            }
        }
        let _ = fs::remove_dir_all(&self.dir);
    }
}
