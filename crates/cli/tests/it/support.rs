//! The program under test, started with only the environment that a test gives it.

use std::fs::{File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::net::TcpStream;
use tokio::process::{Child, ChildStdout, Command};
use tokio::time::timeout;

/// A run that takes longer hangs.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_reveille");

/// A home of the program's own: the settings of the user who runs the tests must not matter.
pub(crate) struct Home {
    dir: TempDir,
}

impl Home {
    pub(crate) fn new() -> Self {
        // Root's private server runs as another user, who must be able to enter.
        let mode = Permissions::from_mode(0o711);
        let dir = tempfile::Builder::new().prefix("reveille-cli-").permissions(mode).tempdir();
        Self { dir: dir.expect("a temporary directory can be made") }
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    pub(crate) fn data_dir(&self) -> PathBuf {
        self.path().join("data")
    }

    /// Writes a file and returns its path.
    pub(crate) fn file(&self, name: &str, text: &str) -> String {
        let path = self.path().join(name);
        std::fs::create_dir_all(path.parent().expect("a file lies in a directory")).expect("directories can be made");
        std::fs::write(&path, text).expect("a file can be written");
        path.to_str().expect("temporary paths are UTF-8").to_owned()
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(PROGRAM);
        command.args(arguments);
        self.furnish(command)
    }

    /// The program under this limit on open files.
    pub(crate) fn command_with_files(&self, files: usize, arguments: &[&str]) -> Command {
        let mut command = Command::new("sh");
        let script = format!("ulimit -n {files}; exec \"$0\" \"$@\"");
        command.args(["-c", &script, PROGRAM]).args(arguments);
        self.furnish(command)
    }

    /// As a shell without job control starts `program &`, under nohup.
    pub(crate) fn command_ignoring_signals(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", "trap '' INT QUIT HUP; exec \"$@\"", "sh", PROGRAM]).args(arguments);
        self.furnish(command)
    }

    fn furnish(&self, mut command: Command) -> Command {
        command.env_clear().env("HOME", self.path()).env("REVEILLE_DATA_DIR", self.data_dir());
        for name in ["PATH", "REVEILLE_PG_BIN", "TMPDIR"] {
            if let Some(value) = ambient(name) {
                command.env(name, value);
            }
        }
        command.current_dir(self.path()).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // A test that fails must leave nothing running; the private server follows by itself.
        command.kill_on_drop(true).process_group(0);
        command
    }

    /// Runs the program to its end.
    pub(crate) async fn run(&self, arguments: &[&str]) -> Ran {
        finished(self.command(arguments)).await
    }
}

#[expect(clippy::disallowed_methods, reason = "a test is configured by its runner's environment")]
fn ambient(name: &str) -> Option<std::ffi::OsString> {
    std::env::var_os(name)
}

/// The result of a run.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ran {
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("no JSON ({error}): {self:?}"))
    }

    /// The one sentence of a failure, without our name.
    pub(crate) fn sentence(&self) -> &str {
        let mut sentences = self.stderr.lines().filter_map(|line| line.strip_prefix("reveille: "));
        let sentence = sentences.next().unwrap_or_else(|| panic!("no sentence: {self:?}"));
        assert_eq!(sentences.next(), None, "more than one sentence: {self:?}");
        sentence
    }

    pub(crate) fn sentences(&self) -> Vec<&str> {
        self.stderr.lines().filter_map(|line| line.strip_prefix("reveille: ")).collect()
    }

    #[track_caller]
    pub(crate) fn assert_code(&self, code: i32) {
        assert_eq!(self.code, Some(code), "{self:?}");
    }
}

pub(crate) async fn finished(mut command: Command) -> Ran {
    let output = timeout(PATIENCE, command.output()).await.expect("the program ends in time");
    let output = output.expect("the program can be run");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("the program prints UTF-8");
    Ran { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

/// A `serve` that has printed where it listens.
pub(crate) struct Serving {
    child: Child,
    pub(crate) address: String,
    _stdout: Lines<BufReader<ChildStdout>>,
    log: Option<Log>,
}

/// The standard error of a `serve`; printed when a test fails.
struct Log(tempfile::NamedTempFile);

impl Drop for Log {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}", std::fs::read_to_string(self.0.path()).unwrap_or_default());
        }
    }
}

impl Serving {
    pub(crate) async fn start(mut command: Command) -> Self {
        let log = Log(tempfile::NamedTempFile::new().expect("a temporary file can be made"));
        let stderr = log.0.reopen().expect("a temporary file can be opened");
        let child = command.stderr(stderr).spawn().expect("the program can be run");
        Self::listening(child, Some(log)).await
    }

    /// One whose logs have no reader: the pipe is closed.
    pub(crate) async fn start_with_closed_stderr(mut command: Command) -> Self {
        let mut child = command.stderr(Stdio::piped()).spawn().expect("the program can be run");
        drop(child.stderr.take());
        Self::listening(child, None).await
    }

    /// One that was started already, with its log elsewhere.
    pub(crate) async fn of(child: Child) -> Self {
        Self::listening(child, None).await
    }

    async fn listening(mut child: Child, log: Option<Log>) -> Self {
        let mut stdout = BufReader::new(child.stdout.take().expect("its output is piped")).lines();
        let line = timeout(PATIENCE, stdout.next_line()).await.expect("it prints in time where it listens");
        let line = line.expect("its output can be read").expect("it does not end before it listens");
        let address =
            line.strip_prefix("listening on http://").unwrap_or_else(|| panic!("it printed {line}")).to_owned();
        Self { child, address, _stdout: stdout, log }
    }

    pub(crate) async fn get(&self, path: &str) -> (u16, String) {
        get(&self.address, path).await
    }

    /// The same, with this name in `Host`.
    pub(crate) async fn get_as(&self, host: &str, path: &str) -> (u16, String) {
        get_as(&self.address, host, path).await
    }

    /// Its standard error so far.
    pub(crate) fn log(&self) -> String {
        let read = self.log.as_ref().map(|log| std::fs::read_to_string(log.0.path()));
        read.expect("its log is kept").expect("its log can be read")
    }

    /// How much of the machine's memory it has, in MiB.
    #[cfg(target_os = "linux")]
    pub(crate) fn resident_mib(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid())).expect("the program runs");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("the system reports it");
        line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") / 1024
    }

    pub(crate) fn pid(&self) -> i32 {
        pid(&self.child)
    }

    /// Sends a signal to the whole group, as a terminal does.
    pub(crate) fn signal(&self, signal: Signal) {
        signal_group(&self.child, signal);
    }

    /// Sends a signal to the program alone.
    pub(crate) fn signal_alone(&self, signal: Signal) {
        kill(Pid::from_raw(pid(&self.child)), signal).expect("the program runs");
    }

    pub(crate) async fn exit_code(&mut self) -> Option<i32> {
        let status = timeout(PATIENCE, self.child.wait()).await.expect("the program ends in time");
        status.expect("its end can be waited for").code()
    }
}

/// Sends a signal to the program and everything it started in its group.
pub(crate) fn signal_group(child: &Child, signal: Signal) {
    kill(Pid::from_raw(-pid(child)), signal).expect("the program runs");
}

fn pid(child: &Child) -> i32 {
    child.id().and_then(|pid| i32::try_from(pid).ok()).expect("the program runs")
}

pub(crate) async fn get(address: &str, path: &str) -> (u16, String) {
    get_as(address, address, path).await
}

async fn get_as(address: &str, host: &str, path: &str) -> (u16, String) {
    send(address, format!("GET {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n")).await
}

pub(crate) async fn post(address: &str, path: &str, json: &str) -> (u16, String) {
    let head =
        format!("POST {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\ncontent-type: application/json");
    send(address, format!("{head}\r\ncontent-length: {}\r\n\r\n{json}", json.len())).await
}

async fn send(address: &str, request: String) -> (u16, String) {
    let mut stream = TcpStream::connect(address).await.expect("the server listens");
    stream.write_all(request.as_bytes()).await.expect("the server takes a request");
    let mut reply = String::new();
    let read = timeout(PATIENCE, stream.read_to_string(&mut reply)).await;
    read.expect("the server answers in time").expect("the server answers");
    let (head, body) = reply.split_once("\r\n\r\n").expect("a reply has a head");
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a reply has a status");
    (status, body.to_owned())
}

/// Waits until no process of the private server is left, for at most 15 s. Each of them holds
/// `alive.lock`, and the supervisor holds `super.lock`.
pub(crate) async fn nothing_left(data_dir: &Path) {
    for name in ["super.lock", "alive.lock"] {
        let path = data_dir.join(name);
        let locked = tokio::task::spawn_blocking(move || File::open(path).and_then(|file| file.lock()));
        let locked = timeout(Duration::from_secs(15), locked).await.expect("the private server is gone in time");
        locked.expect("a lock can be waited for").expect("a lock can be taken");
    }
}
