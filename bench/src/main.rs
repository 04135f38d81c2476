//! `reveille-bench`: how fast is it, beside what, on this machine, now.
//!
//! Every scenario starts what it needs (a private PostgreSQL with fsync on), shows progress on standard error, prints a
//! table with ratios, and with `--json` ends in one line of figures. Speed is measured here and asserted nowhere.

mod bench;
mod cluster;
mod machine;
mod measure;
mod notify;
mod peer;
mod popped;
mod process;
mod report;
mod scenarios;
mod server;
mod statements;
mod wire;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser;
use tokio::signal::unix::{SignalKind, signal};

use bench::Bench;
use report::Report;
use scenarios::{SCENARIOS, Scenario, chaos, single};

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

    /// Measure only the parts of the scenario whose name contains this text, where a scenario has parts.
    #[arg(long)]
    only: Option<String>,

    #[command(flatten)]
    chaos: chaos::Options,
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
    if typed.next_if(|word| word == cluster::SUPERVISOR).is_some() {
        return cluster::supervise(typed.collect::<Vec<OsString>>());
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
    // And everybody who takes part in a chaos run.
    if typed.next_if(|word| word == chaos::CHILD).is_some() {
        let orders = typed.next().and_then(|word| word.into_string().ok()).unwrap_or_default();
        return ended(chaos::run_child(&orders));
    }
    ended(run(&Arguments::parse()))
}

fn ended(result: anyhow::Result<()>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("reveille-bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let bench = Bench::new(arguments.quick, arguments.only.clone(), arguments.chaos.clone());
    let report = runtime.block_on(unless_ended((arguments.scenario.run)(&bench)))?;
    println!("{}", report.table());
    if arguments.save {
        let path = report.save(arguments.quick)?;
        eprintln!("saved to {}", path.display());
    }
    if arguments.json {
        println!("{}", report.json_line(arguments.quick));
    }
    report.verdict()
}

/// What comes of it, unless somebody ends this program first: then whatever it has started goes with it.
async fn unless_ended(measured: impl Future<Output = anyhow::Result<Report>>) -> anyhow::Result<Report> {
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    tokio::select! {
        report = measured => report,
        _ = interrupt.recv() => anyhow::bail!("interrupted"),
        _ = terminate.recv() => anyhow::bail!("ended from outside"),
    }
}
