//! The program itself as the supervisor of its private PostgreSQL.

use std::ffi::OsString;
use std::process::ExitCode;

use reveille_embedded::{EmbeddedOptions, command};

use crate::supervisor::environment;

/// The first argument that makes a program the supervisor.
pub const WORD: &str = "postgres-supervisor";

/// Options of a private PostgreSQL whose supervisor is this program again, under [`WORD`].
pub fn options() -> anyhow::Result<EmbeddedOptions> {
    let program = [command::this_program()?.into_os_string(), WORD.into()];
    Ok(EmbeddedOptions::from_environment(environment, program)?)
}

/// Runs the supervisor, or any other command of `reveille-postgres`.
pub fn run(arguments: Vec<OsString>) -> ExitCode {
    match command::this_program() {
        Ok(program) => command::run(&[program.into_os_string(), WORD.into()], arguments, environment),
        Err(error) => {
            eprintln!("{WORD}: {}", error.sentence());
            ExitCode::FAILURE
        }
    }
}
