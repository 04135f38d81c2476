//! What can be measured.

mod delivery;
mod ground;
mod hostile;
mod http;
mod idle;
pub(crate) mod jobs;
mod jobs_latency;
mod longpolls;
mod messages;
mod orchestrations;
mod wake_latency;

use std::pin::Pin;

use reveille_testkit::scenario::Report;

use crate::bench::Bench;

pub(crate) use http::single;

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
        about: "what a process that waits costs the database, beside a poller",
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
    Scenario {
        name: "longpolls",
        about: "ten thousand parked long polls on one server: memory, statements, deadlines, one answer for one push",
        run: |bench| Box::pin(longpolls::run(bench)),
    },
    Scenario {
        name: "delivery",
        about: "over HTTP from a push to a parked consumer, beside one that polls every 100 ms",
        run: |bench| Box::pin(delivery::run(bench)),
    },
    Scenario {
        name: "http",
        about: "pushes, pops and acks over HTTP: how many, how quickly, and what they cost the server and PostgreSQL",
        run: |bench| Box::pin(http::run(bench)),
    },
    Scenario {
        name: "hostile",
        about: "what one bad client costs the others: large pushes, a flood of new names, a flood of polled names",
        run: |bench| Box::pin(hostile::run(bench)),
    },
    Scenario {
        name: "jobs",
        about: "jobs that do nothing, beside awa, graphile_worker and apalis-postgres: how many are kept up",
        run: |bench| Box::pin(jobs::run(bench)),
    },
    Scenario {
        name: "jobs-latency",
        about: "from the commit of a job to the start of its handler, and what waiting costs, beside the same peers",
        run: |bench| Box::pin(jobs_latency::run(bench)),
    },
    Scenario {
        name: "chaos",
        about: "everything is killed, stopped and cut off while it works, and a ledger shows whether anything was lost",
        run: |bench| Box::pin(reveille_chaos::run(bench.chaos())),
    },
];
