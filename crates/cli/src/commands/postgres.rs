//! `reveille postgres`: the private PostgreSQL by itself, and the supervisor, which is this
//! program, too.

use std::ffi::OsString;
use std::process::ExitCode;

use reveille_embedded::command::{self, this_program};
use reveille_embedded::{Download, EmbeddedError};

use crate::config::Config;
use crate::environment;
use crate::exit::{Exit, Failure};
use crate::output;

/// This program's name for what `reveille-postgres` does.
const NAME: &str = "postgres";
/// The commands that start the supervisor; people do not type them.
const INTERNAL: &[&str] = &["supervise", "guard"];

/// How this program is started as `reveille-postgres`.
pub(crate) fn program() -> Result<Vec<OsString>, EmbeddedError> {
    Ok(vec![this_program()?.into_os_string(), NAME.into()])
}

/// Becomes the supervisor when that was typed, before any configuration is read or a thread is
/// started: a broken configuration file, which only commands read, must not stop a server.
pub(crate) fn internal(typed: &[OsString]) -> Option<ExitCode> {
    let [_, command, step, ..] = typed else { return None };
    if command != NAME || !INTERNAL.iter().any(|name| step == name) {
        return None;
    }
    Some(match program() {
        Ok(program) => command::run(&program, typed.iter().skip(2).cloned(), environment::variable),
        Err(error) => {
            output::note(&error.sentence());
            Exit::Refused.into()
        }
    })
}

/// Runs what was typed behind `postgres`, with our settings as its environment.
pub(crate) fn run(arguments: Vec<OsString>, config: &Config) -> Result<ExitCode, Failure> {
    let arguments = with_settings(arguments, config.private.download());
    Ok(command::run(&program()?, arguments, |name| config.private.environment(name)))
}

/// A setting without a variable is passed on as a flag. Only `run` downloads unasked.
fn with_settings(mut arguments: Vec<OsString>, download: Download) -> Vec<OsString> {
    if download == Download::Forbidden && arguments.first().is_some_and(|command| command == "run") {
        arguments.insert(1, "--no-download".into());
    }
    arguments
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_forbidden_download_is_forbidden_here_too() {
        let run = || vec!["run".into(), "--linger".into(), "1".into()];

        assert_eq!(with_settings(run(), Download::Allowed), run());
        assert_eq!(with_settings(run(), Download::Forbidden), ["run", "--no-download", "--linger", "1"]);
        assert_eq!(with_settings(vec!["fetch".into()], Download::Forbidden), ["fetch"]);
    }
}
