//! `reveille completions`: what a shell sources to complete this program's commands and flags.

use clap::CommandFactory;
use clap_complete::Shell;

use crate::args::Args;
use crate::exit::{Exit, Failure};
use crate::output;

pub(crate) fn run(shell: Shell) -> Result<Exit, Failure> {
    let mut command = Args::command();
    let name = command.get_name().to_owned();
    // Into memory first: the generator panics when its output cannot be written.
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command, name, &mut script);
    output::print(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Done)
}
