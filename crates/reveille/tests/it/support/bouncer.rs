//! `PgBouncer` in transaction mode before a cluster: what most managed PostgreSQL puts in between.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use reveille_testkit::{TestDatabase, needs};

use super::cluster::{free_port, unprivileged};

pub(crate) struct Bouncer {
    dir: tempfile::TempDir,
    port: u16,
    process: Child,
}

impl Bouncer {
    /// `None`, with a word about it, when `PgBouncer` is not installed; in CI that is a failure.
    pub(crate) fn before(db: &TestDatabase, server_connections: u32) -> Option<Self> {
        let program = program();
        needs(program.is_some(), "pgbouncer on PATH or in /usr/sbin");
        let program = program?;
        let dir = tempfile::Builder::new().prefix("rvl-").tempdir_in("/tmp").unwrap();
        let port = free_port();
        let config = dir.path().join("pgbouncer.ini");
        std::fs::write(&config, configuration(db, dir.path(), port, server_connections)).unwrap();
        let opened = Command::new("chmod").arg("-R").arg("a+rwX").arg(dir.path()).status();
        assert!(opened.unwrap().success());
        let mut command = unprivileged(&program);
        let process = command.arg(&config).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let bouncer = Self { dir, port, process: process.unwrap() };
        bouncer.wait_until_ready();
        Some(bouncer)
    }

    fn wait_until_ready(&self) {
        let begun = Instant::now();
        while std::os::unix::net::UnixStream::connect(self.socket()).is_err() {
            assert!(begun.elapsed() < Duration::from_secs(20), "pgbouncer does not start");
            std::thread::park_timeout(Duration::from_millis(10));
        }
    }

    fn socket(&self) -> PathBuf {
        self.dir.path().join(format!(".s.PGSQL.{}", self.port))
    }

    pub(crate) fn url(&self, database: &str) -> String {
        format!("host={} port={} user=postgres dbname={database}", self.dir.path().display(), self.port)
    }
}

fn program() -> Option<PathBuf> {
    let path = std::iter::once("/usr/sbin".to_owned()).chain(path_directories());
    path.map(|dir| Path::new(&dir).join("pgbouncer")).find(|program| program.exists())
}

#[expect(clippy::disallowed_methods, reason = "looking for a program on PATH")]
fn path_directories() -> Vec<String> {
    std::env::var("PATH").unwrap_or_default().split(':').map(ToOwned::to_owned).collect()
}

fn configuration(db: &TestDatabase, dir: &Path, port: u16, server_connections: u32) -> String {
    let url = db.url();
    let of = |key: &str| url.split_whitespace().find_map(|pair| pair.strip_prefix(key)).expect(key).trim_matches('\'');
    format!(
        "[databases]\n* = host={} port={} user=postgres\n[pgbouncer]\nlisten_addr =\nlisten_port = {port}\n\
         unix_socket_dir = {}\nauth_type = any\npool_mode = transaction\ndefault_pool_size = {server_connections}\n\
         max_client_conn = 500\nlogfile = {}\n",
        of("host="),
        of("port="),
        dir.display(),
        dir.join("log").display(),
    )
}

impl Drop for Bouncer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
