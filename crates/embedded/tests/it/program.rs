//! The user program: `reveille-postgres run`.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use crate::fault_harness::{UP_WITHIN, until_some};
use crate::home::Home;

pub(crate) const BINARY: &str = env!("CARGO_BIN_EXE_reveille-postgres");

/// A running program that has said `ready`. Killed when dropped.
pub(crate) struct Program {
    process: Started,
    connection: String,
}

/// A program that is not ready yet, or never will be. Killed when dropped.
pub(crate) struct Started {
    child: Child,
    complaints: PathBuf,
}

/// How a program ended that never was ready.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) code: Option<i32>,
    /// The last line on standard error.
    pub(crate) sentence: String,
}

/// `run` on the data directory, without fsync.
pub(crate) fn disposable(home: &Home) -> Command {
    let mut command = durable(home);
    command.arg("--disposable");
    command
}

/// `run` on the data directory, as users run it.
pub(crate) fn durable(home: &Home) -> Command {
    let mut command = Command::new(BINARY);
    command.arg("run").arg("--data-dir").arg(home.data());
    command
}

/// The same program through a shell, which sets the scene first. `exec "$@"` is the program.
pub(crate) fn within(shell: &[&str], script: &str, command: &Command) -> Command {
    let mut outer = Command::new(shell[0]);
    outer.args(&shell[1..]).arg("-c").arg(script).arg("sh").arg(command.get_program()).args(command.get_args());
    outer
}

/// The same program with the default action of a signal, even if the tests run with it ignored: a
/// shell cannot restore a signal that was ignored when it began, `env` can.
pub(crate) fn with_default(signal: &str, command: &Command) -> Command {
    let mut outer = Command::new("env");
    outer.arg(format!("--default-signal={signal}")).arg(command.get_program()).args(command.get_args());
    outer
}

impl Started {
    pub(crate) fn launch(home: &Home, command: &mut Command) -> Self {
        let complaints = tempfile::Builder::new().prefix("stderr-").tempfile_in(home.path()).unwrap();
        let (file, complaints): (File, PathBuf) = complaints.keep().unwrap();
        let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(file).spawn().unwrap();
        Self { child, complaints }
    }

    pub(crate) fn pid(&self) -> i32 {
        self.child.id().cast_signed()
    }

    #[track_caller]
    pub(crate) fn ready(mut self) -> Program {
        let (sender, receiver) = sync_channel(1);
        let mut stdout = BufReader::new(self.child.stdout.take().unwrap());
        std::thread::spawn(move || {
            let mut line = String::new();
            let _ = stdout.read_line(&mut line);
            let _ = sender.send(line);
        });
        let line = receiver.recv_timeout(UP_WITHIN + Duration::from_secs(10)).unwrap_or_default();
        match line.trim().strip_prefix("ready: ") {
            Some(connection) => Program { connection: connection.to_owned(), process: self },
            None => panic!("not ready: {line}{}", self.complaints()),
        }
    }

    /// Waits for the end of a program that is expected to refuse.
    #[track_caller]
    pub(crate) fn refusal(mut self) -> Refusal {
        let code = self.wait().code();
        Refusal { code, sentence: self.complaints().lines().last().unwrap_or_default().to_owned() }
    }

    #[track_caller]
    fn wait(&mut self) -> ExitStatus {
        until_some(2 * UP_WITHIN, "the end of the program", || self.child.try_wait().unwrap())
    }

    fn complaints(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.complaints).unwrap_or_default()).into_owned()
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        // Does nothing to a process that was waited for and has given its id away.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Program {
    /// Starts a program on the directory, with a server without fsync, and waits until it is ready.
    #[track_caller]
    pub(crate) fn start(home: &Home) -> Self {
        Self::spawn(home, &mut disposable(home))
    }

    #[track_caller]
    pub(crate) fn spawn(home: &Home, command: &mut Command) -> Self {
        Started::launch(home, command).ready()
    }

    pub(crate) fn connection(&self) -> &str {
        &self.connection
    }

    pub(crate) fn pid(&self) -> i32 {
        self.process.pid()
    }

    /// `kill -9`, and the end of it.
    pub(crate) fn kill(self) {
        drop(self);
    }

    #[track_caller]
    pub(crate) fn wait(&mut self) -> ExitStatus {
        self.process.wait()
    }
}

/// Runs a command that is expected to refuse, and returns what it said.
#[track_caller]
pub(crate) fn refusal(home: &Home, command: &mut Command) -> Refusal {
    Started::launch(home, command).refusal()
}

impl Refusal {
    /// This exit code, and every one of these words in one line.
    #[track_caller]
    pub(crate) fn says(&self, code: i32, words: &[&str]) {
        assert_eq!(self.code, Some(code), "{}", self.sentence);
        for word in words {
            assert!(self.sentence.contains(word), "`{word}` is not in: {}", self.sentence);
        }
    }
}
