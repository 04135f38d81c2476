//! What can be measured.

mod ground;
mod idle;
mod messages;
mod orchestrations;
mod wake_latency;

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
pub(crate) const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "ground",
        about: "what PostgreSQL and our connections give: pipelining, commits, NOTIFY, fused statements",
        run: |bench| Box::pin(ground::run(bench)),
    },
    Scenario {
        name: "idle",
        about: "what a process that waits asks of the database, beside a poller",
        run: |bench| Box::pin(idle::run(bench)),
    },
    Scenario {
        name: "wake-latency",
        about: "from a commit on one node to a claimed row on another, beside the bare NOTIFY",
        run: |bench| Box::pin(wake_latency::run(bench)),
    },
    Scenario {
        name: "orchestrations",
        about: "our provider for duroxide beside duroxide-pg and duroxide-pg-opt",
        run: |bench| Box::pin(orchestrations::run(bench)),
    },
    Scenario {
        name: "messages",
        about: "our queues beside pgmq and a table with a state column: push, pop, ack, and how they grow",
        run: |bench| Box::pin(messages::run(bench)),
    },
];
