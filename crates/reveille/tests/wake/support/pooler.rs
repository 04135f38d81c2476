//! `PgBouncer` in transaction mode, set up as people do who were told "unsupported startup parameter": it takes our
//! session settings and drops them.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use reveille_testkit::{TestDatabase, needs};

use super::cluster::{free_port, unprivileged};

pub(crate) struct Pooler {
    dir: tempfile::TempDir,
    port: u16,
    process: Child,
}

/// What it does with settings at login.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Settings {
    Refused,
    Swallowed,
}

impl Pooler {
    /// With one session to the server for everybody. `None`, with a word about it, when `PgBouncer` is not installed.
    pub(crate) fn before(database: &TestDatabase, settings: Settings) -> Option<Self> {
        let program = PathBuf::from("/usr/sbin/pgbouncer");
        if !needs(program.exists(), "pgbouncer in /usr/sbin") {
            return None;
        }
        let dir = tempfile::Builder::new().prefix("rvl-").tempdir_in("/tmp").unwrap();
        let port = free_port();
        let config = dir.path().join("pgbouncer.ini");
        std::fs::write(&config, configuration(database, dir.path(), port, settings)).unwrap();
        let opened = Command::new("chmod").arg("-R").arg("a+rwX").arg(dir.path()).status();
        assert!(opened.unwrap().success());
        let mut command = unprivileged(&program);
        let process = command.arg(&config).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let pooler = Self { dir, port, process: process.unwrap() };
        pooler.wait_until_ready();
        Some(pooler)
    }

    fn wait_until_ready(&self) {
        let began = Instant::now();
        let socket = self.dir.path().join(format!(".s.PGSQL.{}", self.port));
        while std::os::unix::net::UnixStream::connect(&socket).is_err() {
            assert!(began.elapsed() < Duration::from_secs(20), "pgbouncer does not start");
            std::thread::park_timeout(Duration::from_millis(10));
        }
    }

    pub(crate) fn url(&self, database: &TestDatabase) -> String {
        format!("host={} port={} user=postgres dbname={}", self.dir.path().display(), self.port, database.name())
    }
}

impl Drop for Pooler {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn configuration(database: &TestDatabase, dir: &Path, port: u16, settings: Settings) -> String {
    let url = database.url();
    let of = |key: &str| url.split_whitespace().find_map(|pair| pair.strip_prefix(key)).expect(key).trim_matches('\'');
    let ignored = match settings {
        Settings::Refused => "",
        Settings::Swallowed => "ignore_startup_parameters = options\n",
    };
    format!(
        "[databases]\n* = host={} port={} user=postgres\n[pgbouncer]\nlisten_addr =\nlisten_port = {port}\n\
         unix_socket_dir = {}\nauth_type = any\npool_mode = transaction\ndefault_pool_size = 1\nlogfile = {}\n{ignored}",
        of("host="),
        of("port="),
        dir.display(),
        dir.join("log").display(),
    )
}
