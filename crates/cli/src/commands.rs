//! One file for each command.

mod ack;
mod completions;
mod config;
mod dlq;
mod doctor;
mod groups;
mod jobs;
mod man;
mod migrate;
mod pop;
pub(crate) mod postgres;
mod push;
mod queues;
mod serve;
mod signals;
mod systemd;
mod tail;
mod wait_for_database;

use std::process::ExitCode;

use tokio::runtime::Runtime;
use tracing::level_filters::LevelFilter;
use tracing::warn;

use crate::args::{Args, Command, Config as ConfigStep};
use crate::config::{self as settings, DEFAULTS, Effective};
use crate::environment;
use crate::exit::{Exit, Failure};
use crate::output;
use crate::remote::Remote;

/// Runs the command that was typed.
pub(crate) fn run(args: Args) -> Result<ExitCode, Failure> {
    // What says how to use this program must be there even if its configuration is broken.
    match &args.command {
        Command::Config { step: ConfigStep::Default } => {
            output::print(DEFAULTS)?;
            return Ok(Exit::Done.into());
        }
        Command::Completions { shell } => return Ok(completions::run(*shell)?.into()),
        Command::Man { directory } => return Ok(man::run(directory)?.into()),
        _ => {}
    }
    let (config, effective) = settings::load(&args)?;
    let usual = if matches!(args.command, Command::Serve(_)) { LevelFilter::INFO } else { LevelFilter::WARN };
    output::start_logs(config.log, usual);
    warn_of_slips(&effective);
    let exit = match args.command {
        Command::Serve(_) => block_on(serve::run(&config))?,
        Command::Push(push) => block_on(push::run(push, &Remote::new(&config.remote)))?,
        Command::Pop(pop) => block_on(pop::run(pop, &Remote::new(&config.remote)))?,
        Command::Ack(ack) => block_on(ack::run(ack, &Remote::new(&config.remote)))?,
        Command::Tail(tail) => block_on(tail::run(tail, &Remote::new(&config.remote)))?,
        Command::Queues(queues) => block_on(queues::run(queues, &Remote::new(&config.remote)))?,
        Command::Groups(groups) => block_on(groups::run(groups, &Remote::new(&config.remote)))?,
        Command::Dlq(dlq) => block_on(dlq::run(dlq, &Remote::new(&config.remote)))?,
        Command::Jobs(jobs) => block_on(jobs::run(jobs, &config))?,
        Command::Migrate { step } => block_on(migrate::run(step, &config))?,
        Command::Doctor { json } => block_on(doctor::run(json, &config))?,
        Command::Config { step: ConfigStep::Show { json, .. } } => config::show(json, &config, &effective)?,
        Command::Config { step: ConfigStep::Default } | Command::Completions { .. } | Command::Man { .. } => Exit::Done,
        Command::Postgres { arguments } => return postgres::run(arguments, &config),
    };
    Ok(exit.into())
}

fn warn_of_slips(effective: &Effective) {
    for (name, meant) in effective.slips(&environment::our_names()) {
        warn!("the variable {name} sets nothing; did you mean {meant}?");
    }
}

fn block_on(work: impl Future<Output = Result<Exit, Failure>>) -> Result<Exit, Failure> {
    let runtime = Runtime::new().map_err(|error| Failure::refused(format!("cannot start threads: {error}")))?;
    let done = runtime.block_on(work);
    // A start of the private server that was abandoned ends with the process; waiting for it could
    // hang.
    runtime.shutdown_background();
    done
}
