//! How a program ends: with a report that is shown, with an error, or from outside.

use std::process::ExitCode;

use tokio::signal::unix::{SignalKind, signal};

use super::Report;

/// What is done with a report at the end of a program.
#[derive(Debug, Clone, Copy, Default)]
pub struct Showing {
    /// It was a short run.
    pub quick: bool,
    /// It is also written where results are kept.
    pub save: bool,
    /// It ends with one line of JSON.
    pub json: bool,
}

/// Prints a report, and fails if the run broke a promise.
pub fn show(report: &Report, how: Showing) -> anyhow::Result<()> {
    println!("{}", report.table());
    if how.save {
        let path = report.save(how.quick)?;
        eprintln!("saved to {}", path.display());
    }
    if how.json {
        println!("{}", report.json_line(how.quick));
    }
    report.verdict()
}

/// The exit code of a program that ends like this; an error is printed under its name.
pub fn exit_code(program: &str, result: anyhow::Result<()>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{program}: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// The result of `measured`, unless this program is ended first: then all that it has started ends
/// with it.
pub async fn unless_ended(measured: impl Future<Output = anyhow::Result<Report>>) -> anyhow::Result<Report> {
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    tokio::select! {
        report = measured => report,
        _ = interrupt.recv() => anyhow::bail!("interrupted"),
        _ = terminate.recv() => anyhow::bail!("ended from outside"),
    }
}
