//! `reveille man`: a manual page for each command, made from the same definitions as `--help`.

use std::path::Path;

use clap::CommandFactory;

use crate::args::Args;
use crate::exit::{Exit, Failure};

/// Writes the pages into `directory`, which is created if need be.
pub(crate) fn run(directory: &Path) -> Result<Exit, Failure> {
    let written =
        std::fs::create_dir_all(directory).and_then(|()| clap_mangen::generate_to(Args::command(), directory));
    let shown = directory.display();
    written.map_err(|error| Failure::refused(format!("cannot write manual pages into {shown}: {error}")))?;
    Ok(Exit::Done)
}
