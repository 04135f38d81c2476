//! `reveille-chaos`: the chaos run, started by itself.
//!
//! `reveille-bench -- chaos` does the same with the same figures.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser;
use reveille_chaos::{CHILD, Options};
use reveille_testkit::scenario::{Showing, exit_code, show, supervisor, unless_ended};

/// Kills, stops and cuts off everything while it works, and shows whether anything was lost.
#[derive(Debug, Parser)]
#[command(name = "reveille-chaos", version)]
struct Arguments {
    /// End with one line of JSON: `{"scenario", "quick", "figures"}`.
    #[arg(long)]
    json: bool,

    /// Also write the result, with machine, versions and command, to `bench/results/chaos.md`.
    #[arg(long)]
    save: bool,

    #[command(flatten)]
    options: Options,
}

fn main() -> ExitCode {
    let mut typed = std::env::args_os().skip(1).peekable();
    // The supervisor of the private PostgreSQL is this program again, and so is every process that
    // takes part in the run.
    if typed.next_if(|word| word == supervisor::WORD).is_some() {
        return supervisor::run(typed.collect::<Vec<OsString>>());
    }
    if typed.next_if(|word| word == CHILD).is_some() {
        let assignment = typed.next().and_then(|word| word.into_string().ok()).unwrap_or_default();
        return ended(reveille_chaos::run_child(&assignment));
    }
    ended(run(&Arguments::parse()))
}

fn ended(result: anyhow::Result<()>) -> ExitCode {
    exit_code("reveille-chaos", result)
}

fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let report = runtime.block_on(unless_ended(reveille_chaos::run(&arguments.options)))?;
    show(&report, Showing { quick: false, save: arguments.save, json: arguments.json })
}
