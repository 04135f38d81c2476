//! What can be measured.

mod ground;

use std::pin::Pin;

use crate::bench::Bench;
use crate::report::Report;

type Running<'b> = Pin<Box<dyn Future<Output = anyhow::Result<Report>> + 'b>>;

/// A name, a sentence, and the work.
#[derive(Debug)]
pub(crate) struct Scenario {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    pub(crate) run: fn(&Bench) -> Running<'_>,
}

/// Every scenario, in the order of the product's parts.
pub(crate) const SCENARIOS: &[Scenario] = &[Scenario {
    name: "ground",
    about: "what PostgreSQL and our connections give: pipelining, commits, NOTIFY, fused statements",
    run: |bench| Box::pin(ground::run(bench)),
}];
