//! `PgBouncer` in transaction mode before a test's database: what most managed PostgreSQL puts in
//! between.

use std::fs::{self, DirBuilder};
use std::net::TcpListener;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::unistd::geteuid;

use crate::supervisor::environment;
use crate::{TestDatabase, needs};

/// The pooler. Ends with the value.
#[derive(Debug)]
pub struct Pooler {
    dir: PathBuf,
    port: u16,
    database: String,
    process: Child,
}

/// What a pooler does with session settings at login.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoginSettings {
    /// Says that it does not know them.
    Refused,
    /// Takes them and drops them, as people configure it who were refused.
    Swallowed,
}

impl Pooler {
    /// A pooler with so many sessions to the server for all clients together. `None`, with a note
    /// on standard error, when `PgBouncer` is not installed; in CI that is a failure.
    ///
    /// # Panics
    /// When it does not start.
    pub fn before(database: &TestDatabase, server_sessions: u32, settings: LoginSettings) -> Option<Self> {
        let program = program();
        needs(program.is_some(), "pgbouncer on PATH or in /usr/sbin");
        let program = program?;
        let dir = directory();
        let port = free_port();
        let config = dir.join("pgbouncer.ini");
        let text = configuration(&database.url(), &dir, port, server_sessions, settings);
        fs::write(&config, text).expect("a file can be written");
        let mut command = unprivileged(&program);
        let command = command.arg(&config).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let process = command.spawn().expect("pgbouncer starts");
        let pooler = Self { dir, port, database: database.name().to_owned(), process };
        pooler.wait_until_ready();
        Some(pooler)
    }

    /// A connection string through the pooler.
    pub fn url(&self) -> String {
        format!("host={} port={} user=postgres dbname={}", self.dir.display(), self.port, self.database)
    }

    fn wait_until_ready(&self) {
        let began = Instant::now();
        let socket = self.dir.join(format!(".s.PGSQL.{}", self.port));
        while std::os::unix::net::UnixStream::connect(&socket).is_err() {
            assert!(began.elapsed() < Duration::from_secs(20), "pgbouncer does not start");
            std::thread::park_timeout(Duration::from_millis(10));
        }
    }
}

impl Drop for Pooler {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = fs::remove_dir_all(&self.dir);
    }
}

/// Short, for a socket's path has a limit; open, for the pooler runs as another user when we are
/// root.
fn directory() -> PathBuf {
    let dir = std::env::temp_dir().join(format!("rvl-{}-{:08x}", std::process::id(), crate::database::random()));
    DirBuilder::new().mode(0o700).create(&dir).expect("the temporary directory can be written");
    if geteuid().is_root() {
        let opened = Command::new("chown").arg("postgres").arg(&dir).status();
        assert!(opened.is_ok_and(|status| status.success()), "a directory can be given away");
    }
    dir
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    listener.local_addr().expect("a listener has an address").port()
}

/// `PgBouncer` refuses to run as root.
fn unprivileged(program: &Path) -> Command {
    if !geteuid().is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid=postgres", "--regid=postgres", "--clear-groups", "--"]).arg(program);
    command
}

fn program() -> Option<PathBuf> {
    let path = environment("PATH").unwrap_or_default();
    let directories = std::iter::once(PathBuf::from("/usr/sbin")).chain(std::env::split_paths(&path));
    directories.map(|dir| dir.join("pgbouncer")).find(|program| program.exists())
}

fn configuration(url: &str, dir: &Path, port: u16, server_sessions: u32, settings: LoginSettings) -> String {
    let of = |key: &str| url.split_whitespace().find_map(|pair| pair.strip_prefix(key)).expect(key).trim_matches('\'');
    let ignored = match settings {
        LoginSettings::Refused => "",
        LoginSettings::Swallowed => "ignore_startup_parameters = options\n",
    };
    format!(
        "[databases]\n* = host={} port={} user=postgres\n[pgbouncer]\nlisten_addr =\nlisten_port = {port}\n\
         unix_socket_dir = {}\nauth_type = any\npool_mode = transaction\ndefault_pool_size = {server_sessions}\n\
         max_client_conn = 500\nlogfile = {}\n{ignored}",
        of("host="),
        of("port="),
        dir.display(),
        dir.join("log").display(),
    )
}
