//! The process that is the parent of postgres.
//!
//! This file is the program's side: it starts a child with its [`Duty`], and reads from the child's
//! standard output why it failed, if it did. The child's side is [`mod@guard`].

mod duty;
mod guard;
mod initdb;
mod logs;
mod server;

pub(crate) use duty::Duty;
pub(crate) use guard::guard;

use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};

use crate::EmbeddedOptions;
use crate::binaries::Binaries;
use crate::cluster_dir::ClusterDir;
use crate::error::EmbeddedError;
use crate::identity::RunAs;

/// A supervisor that this program started.
#[derive(Debug)]
pub(crate) struct Supervisor {
    child: Child,
}

/// How a supervisor ends.
#[derive(Debug, Clone, Copy)]
pub(crate) enum End {
    /// Another one was in charge already, or the server had no more users.
    Left,
    /// It reported nothing: it was killed.
    Killed(ExitStatus),
}

impl Supervisor {
    pub(crate) fn spawn(
        dir: &ClusterDir,
        options: &EmbeddedOptions,
        binaries: &Binaries,
        run_as: Option<RunAs>,
    ) -> Result<Self, EmbeddedError> {
        let duty = Duty {
            data_dir: dir.base().to_owned(),
            binaries: binaries.dir.clone(),
            major: binaries.major,
            run_as,
            durability: options.durability,
            tcp_port: options.tcp_port,
            linger: options.linger,
            settings: options.checked_settings()?,
        };
        let [program, leading @ ..] = options.supervisor.as_slice() else {
            return Err(EmbeddedError::BadSupervisor);
        };
        // A process group of its own, or Ctrl-C at this program would end the server under the
        // others.
        let mut command = Command::new(program);
        command.args(leading).arg("supervise").args(duty.arguments()).current_dir("/").process_group(0);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(logs::append(&dir.supervisor_log())?);
        let child = command.spawn().map_err(EmbeddedError::program(Path::new(program)))?;
        Ok(Self { child })
    }

    /// How it has ended, if it has. Its failure is the error.
    pub(crate) fn end(&mut self) -> Result<Option<End>, EmbeddedError> {
        let lost = |source| EmbeddedError::Program { program: "supervisor".into(), source };
        let Some(status) = self.child.try_wait().map_err(lost)? else {
            return Ok(None);
        };
        if status.success() {
            return Ok(Some(End::Left));
        }
        let mut said = String::new();
        if let Some(mut stdout) = self.child.stdout.take() {
            stdout.read_to_string(&mut said).map_err(lost)?;
        }
        match read_failure(&said) {
            Some(failure) => Err(failure),
            None => Ok(Some(End::Killed(status))),
        }
    }

    /// Blocks until it has ended.
    pub(crate) fn wait(mut self) {
        let _ = self.child.wait();
    }
}

/// What a supervisor that fails sends to the program that started it.
pub(crate) fn write_failure(error: &EmbeddedError) -> String {
    let kind = if error.is_unreachable() { "unreachable" } else { "refused" };
    format!("{kind}: {}", error.sentence())
}

fn read_failure(line: &str) -> Option<EmbeddedError> {
    let (kind, said) = line.trim().split_once(": ")?;
    Some(EmbeddedError::Supervisor { said: said.to_owned(), unreachable: kind == "unreachable" })
}

/// Writes a line to this process's log. `eprintln!` would end it when the disk is full, just when
/// it is needed most.
pub(crate) fn note(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_arrives_as_it_was_sent() {
        let sent = EmbeddedError::DiskFull { dir: "/d: with a colon".into() };

        let received = read_failure(&write_failure(&sent)).unwrap();

        assert_eq!(received.to_string(), sent.to_string());
        assert!(!received.is_unreachable());
    }
}
