//! `reveille-postgres`: a private PostgreSQL, supervised. See [`reveille_embedded::command`].

use std::process::ExitCode;

use reveille_embedded::command;

#[expect(clippy::disallowed_methods, reason = "a command line is where the environment is read")]
fn main() -> ExitCode {
    let program = match command::this_program() {
        Ok(program) => program,
        Err(error) => {
            eprintln!("reveille-postgres: {}", error.sentence());
            return ExitCode::from(1);
        }
    };
    command::run(&[program.into_os_string()], std::env::args_os().skip(1), |name| std::env::var_os(name))
}
