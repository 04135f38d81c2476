//! `reveille-bench`: how fast Reveille and its peers are on this machine.
//!
//! Every scenario starts what it needs (a private PostgreSQL with fsync on), shows progress on
//! standard error, prints a table with ratios, and with `--json` ends in one line of figures. Speed
//! is measured here and asserted nowhere.

mod bench;
mod cluster;
mod measure;
mod notify;
mod peer;
mod popped;
mod scenarios;
mod server;
mod statements;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser;
use reveille_testkit::scenario::{Showing, exit_code, show, supervisor, unless_ended};

use bench::Bench;
use scenarios::{SCENARIOS, Scenario, single};

/// Measures Reveille on this machine.
#[derive(Debug, Parser)]
#[command(name = "reveille-bench", version, after_help = listing())]
struct Arguments {
    /// The scenario to run (see below).
    #[arg(value_parser = scenario)]
    scenario: &'static Scenario,

    /// Short measurements: at most five minutes, good for a smoke test and a first impression.
    #[arg(long)]
    quick: bool,

    /// End with one line of JSON: `{"scenario", "quick", "figures"}`.
    #[arg(long)]
    json: bool,

    /// Also write the result, with machine, versions and command, to `bench/results/<scenario>.md`.
    #[arg(long, conflicts_with = "only")]
    save: bool,

    /// Measure only the parts of the scenario whose name contains this text, where a scenario has
    /// parts.
    #[arg(long)]
    only: Option<String>,

    #[command(flatten)]
    chaos: reveille_chaos::Options,
}

fn listing() -> String {
    let rows: Vec<String> = SCENARIOS.iter().map(|it| format!("  {:<14} {}", it.name, it.about)).collect();
    format!("Scenarios:\n{}", rows.join("\n"))
}

fn scenario(name: &str) -> Result<&'static Scenario, String> {
    SCENARIOS.iter().find(|it| it.name == name).ok_or_else(|| format!("there is no such scenario\n\n{}", listing()))
}

fn main() -> ExitCode {
    let mut typed = std::env::args_os().skip(1).peekable();
    // The supervisor of the private PostgreSQL is this program again.
    if typed.next_if(|word| word == supervisor::WORD).is_some() {
        return supervisor::run(typed.collect::<Vec<OsString>>());
    }
    // So is the child that measures our own provider.
    if typed.next_if(|word| word == peer::CHILD).is_some() {
        let url = typed.next().and_then(|word| word.into_string().ok()).unwrap_or_default();
        return ended(peer::measure(url));
    }
    // And the server that runs one statement for each request.
    if typed.next_if(|word| word == single::CHILD).is_some() {
        let mut word = || typed.next().and_then(|word| word.into_string().ok()).unwrap_or_default();
        return ended(single::serve(&word(), &word()));
    }
    if typed.next_if(|word| word == scenarios::jobs::CHILD).is_some() {
        let mut word = || typed.next().and_then(|word| word.into_string().ok());
        return ended(scenarios::jobs::measure(&word().unwrap_or_default(), word().as_deref()));
    }
    // And every process that takes part in a chaos run.
    if typed.next_if(|word| word == reveille_chaos::CHILD).is_some() {
        let assignment = typed.next().and_then(|word| word.into_string().ok()).unwrap_or_default();
        return ended(reveille_chaos::run_child(&assignment));
    }
    ended(run(&Arguments::parse()))
}

fn ended(result: anyhow::Result<()>) -> ExitCode {
    exit_code("reveille-bench", result)
}

fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let Arguments { scenario, quick, json, save, only, chaos } = arguments;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let bench = Bench::new(*quick, only.clone(), chaos.clone());
    let report = runtime.block_on(unless_ended((scenario.run)(&bench)))?;
    show(&report, Showing { quick: *quick, save: *save, json: *json })
}
