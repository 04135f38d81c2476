//! A small PostgreSQL of a test's own, for what a shared one cannot do: passwords, TLS, standbys.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How to start it.
#[derive(Default)]
pub(crate) struct Setup {
    /// Lines of `pg_hba.conf`; empty for trust on the socket and on loopback.
    pub(crate) hba: &'static str,
    /// Settings as `name=value`.
    pub(crate) settings: Vec<String>,
    /// Files to put into the data directory, as name and content.
    pub(crate) files: Vec<(String, Vec<u8>)>,
}

pub(crate) struct Cluster {
    dir: tempfile::TempDir,
    port: u16,
    settings: Vec<String>,
    server: Option<Child>,
}

/// Where the binaries are: where the environment says, else Debian's newest.
#[expect(clippy::disallowed_methods, reason = "the environment names the PostgreSQL that tests use")]
pub(crate) fn binaries() -> PathBuf {
    if let Some(chosen) = std::env::var_os("REVEILLE_PG_BIN") {
        return chosen.into();
    }
    let mut found: Vec<PathBuf> = std::fs::read_dir("/usr/lib/postgresql")
        .expect("PostgreSQL is installed, or REVEILLE_PG_BIN names it")
        .map(|entry| entry.unwrap().path().join("bin"))
        .filter(|bin| bin.join("initdb").exists())
        .collect();
    found.sort();
    found.pop().expect("PostgreSQL is installed, or REVEILLE_PG_BIN names it")
}

/// PostgreSQL refuses to run as root.
pub(crate) fn unprivileged(program: &Path) -> Command {
    if !is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid=postgres", "--regid=postgres", "--clear-groups", "--"]).arg(program);
    command
}

fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0)
}

fn give_away(path: &Path) {
    if is_root() {
        let status = Command::new("chown").arg("-R").arg("postgres:postgres").arg(path).status();
        assert!(status.unwrap().success());
    }
}

pub(crate) fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn done(command: &mut Command) {
    let output = command.current_dir("/").output().expect("runs");
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

impl Cluster {
    /// A cluster that trusts every client.
    pub(crate) fn new() -> Self {
        Self::start(Setup::default())
    }

    pub(crate) fn start(setup: Setup) -> Self {
        let dir = tempfile::Builder::new().prefix("rvl-").tempdir_in("/tmp").unwrap();
        give_away(dir.path());
        let data = dir.path().join("data");
        let initdb = binaries().join("initdb");
        done(
            unprivileged(&initdb)
                .args(["-U", "postgres", "-A", "trust", "-N", "-E", "UTF8", "--locale=C", "-D"])
                .arg(&data),
        );
        if !setup.hba.is_empty() {
            std::fs::write(data.join("pg_hba.conf"), setup.hba).unwrap();
        }
        for (name, content) in &setup.files {
            std::fs::write(data.join(name), content).unwrap();
        }
        give_away(&data);
        for (name, _) in &setup.files {
            done(Command::new("chmod").arg("600").arg(data.join(name)));
        }
        let mut cluster = Self { dir, port: free_port(), settings: setup.settings, server: None };
        cluster.run();
        cluster
    }

    /// A copy that is in recovery and accepts no writes. Copied while this one is down, because the
    /// packages of some versions have no `pg_basebackup`.
    pub(crate) fn standby(&mut self) -> Self {
        let dir = tempfile::Builder::new().prefix("rvl-").tempdir_in("/tmp").unwrap();
        self.stop("-INT");
        done(Command::new("cp").arg("-a").arg(self.dir.path().join("data")).arg(dir.path()));
        std::fs::write(dir.path().join("data/standby.signal"), "").unwrap();
        give_away(dir.path());
        self.run();
        let mut standby = Self { dir, port: free_port(), settings: Vec::new(), server: None };
        standby.run();
        standby
    }

    fn run(&mut self) {
        let log = std::fs::File::create(self.dir.path().join("log")).unwrap();
        let mut command = unprivileged(&binaries().join("postgres"));
        command.arg("-D").arg(self.dir.path().join("data")).arg("-k").arg(self.dir.path());
        command.args(["-p", &self.port.to_string(), "-c", "listen_addresses=127.0.0.1", "-c", "fsync=off"]);
        for setting in &self.settings {
            command.args(["-c", setting]);
        }
        let server = command.current_dir("/").stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn();
        self.server = Some(server.unwrap());
        self.wait_until_ready();
    }

    fn wait_until_ready(&mut self) {
        let begun = Instant::now();
        let pid_file = self.dir.path().join("data/postmaster.pid");
        loop {
            let content = std::fs::read_to_string(&pid_file).unwrap_or_default();
            if content.lines().nth(7).is_some_and(|state| state.trim() == "ready") {
                return;
            }
            let ended = self.server.as_mut().and_then(|server| server.try_wait().unwrap());
            let log = || std::fs::read_to_string(self.dir.path().join("log")).unwrap_or_default();
            assert!(ended.is_none() && begun.elapsed() < Duration::from_secs(60), "no server: {}", log());
            std::thread::park_timeout(Duration::from_millis(10));
        }
    }

    fn stop(&mut self, signal: &str) {
        if let Some(mut server) = self.server.take() {
            done(Command::new("kill").args([signal, &server.id().to_string()]));
            server.wait().unwrap();
        }
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// Through the Unix socket, as superuser.
    pub(crate) fn url(&self, database: &str) -> String {
        format!("host={} port={} user=postgres dbname={database}", self.dir.path().display(), self.port)
    }

    /// Through loopback; the rest of the parameters is the caller's.
    pub(crate) fn tcp(&self, rest: &str) -> String {
        format!("port={} dbname=postgres {rest}", self.port)
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.stop("-QUIT");
    }
}
