//! An order: three steps, a pause, and a workflow of its own for the parcel. Every step that runs
//! is recorded.

use std::sync::Arc;
use std::time::Duration;

use duroxide::runtime::registry::ActivityRegistry;
use duroxide::runtime::{OrchestrationStatus, Runtime, RuntimeOptions};
use duroxide::{ActivityContext, Client, Event, EventKind, OrchestrationContext, OrchestrationRegistry};
use reveille_duroxide::PostgresProvider;
use reveille_testkit::Events;

/// How many activities an order has, its parcel included.
pub(crate) const STEPS: usize = 4;
/// How long a test waits for an order.
const PATIENCE: Duration = Duration::from_secs(90);

/// Where steps are recorded: `instance/step`.
#[derive(Clone)]
pub(crate) enum Ledger {
    /// In this process.
    Memory(Events<String>),
    /// In the table `ledger`, with the process that did it.
    Table(Arc<tokio_postgres::Client>),
}

impl Ledger {
    async fn note(&self, step: &str) {
        match self {
            Self::Memory(events) => events.record(step.to_owned()),
            Self::Table(client) => {
                let pid = i32::try_from(std::process::id()).expect("process ids are small");
                let note = "insert into ledger (step, process) values ($1, $2)";
                client.execute(note, &[&step, &pid]).await.expect("the ledger can be written");
            }
        }
    }
}

fn activities(ledger: Ledger) -> ActivityRegistry {
    let step = move |_: ActivityContext, step: String| {
        let ledger = ledger.clone();
        async move {
            ledger.note(&step).await;
            // Long enough to be killed in.
            tokio::time::sleep(Duration::from_millis(15)).await;
            Ok(format!("{step} done"))
        }
    };
    ActivityRegistry::builder().register("Step", step).build()
}

fn orchestrations() -> OrchestrationRegistry {
    let order = |ctx: OrchestrationContext, name: String| async move {
        for step in 0..STEPS - 1 {
            ctx.schedule_activity("Step", format!("{name}/{step}")).await?;
        }
        ctx.schedule_timer(Duration::from_millis(40)).await;
        ctx.schedule_sub_orchestration("Parcel", name.clone()).await
    };
    let parcel = |ctx: OrchestrationContext, name: String| async move {
        ctx.schedule_activity("Step", format!("{name}/{}", STEPS - 1)).await?;
        Ok(format!("{name} delivered"))
    };
    OrchestrationRegistry::builder().register("Order", order).register("Parcel", parcel).build()
}

/// A runtime with four slots of each kind, whose locks end soon after it is killed.
pub(crate) async fn run(provider: &PostgresProvider, ledger: Ledger) -> Arc<Runtime> {
    let options = RuntimeOptions {
        orchestration_concurrency: 4,
        worker_concurrency: 4,
        orchestrator_lock_timeout: Duration::from_secs(2),
        worker_lock_timeout: Duration::from_secs(3),
        ..RuntimeOptions::default()
    };
    let provider = Arc::new(provider.clone());
    Runtime::start_with_options(provider, activities(ledger), orchestrations(), options).await
}

pub(crate) fn client(provider: &PostgresProvider) -> Client {
    Client::new(Arc::new(provider.clone()))
}

pub(crate) fn name(number: usize) -> String {
    format!("order-{number}")
}

pub(crate) async fn begin(client: &Client, number: usize) {
    client.start_orchestration(&name(number), "Order", name(number)).await.expect("an order can be started");
}

/// Waits until the order is complete, and checks that its history has each event once.
pub(crate) async fn check_complete(client: &Client, number: usize) {
    let name = name(number);
    let status = client.wait_for_orchestration(&name, PATIENCE).await.expect("the order ends");
    match status {
        OrchestrationStatus::Completed { output, .. } => assert_eq!(output, format!("{name} delivered")),
        other => panic!("{name} is not complete but {other:?}"),
    }
    let history = client.read_execution_history(&name, 1).await.expect("its history can be read");
    let count = |wanted: fn(&EventKind) -> bool| history.iter().filter(|event| wanted(&event.kind)).count();
    assert_eq!(count(|kind| matches!(kind, EventKind::OrchestrationCompleted { .. })), 1, "{name}");
    assert_eq!(count(|kind| matches!(kind, EventKind::ActivityScheduled { .. })), STEPS - 1, "{name}");
    assert_eq!(count(|kind| matches!(kind, EventKind::ActivityCompleted { .. })), STEPS - 1, "{name}");
    assert_eq!(count(|kind| matches!(kind, EventKind::TimerFired { .. })), 1, "{name}");
    assert_eq!(count(|kind| matches!(kind, EventKind::SubOrchestrationCompleted { .. })), 1, "{name}");
    let mut answered: Vec<Option<u64>> = history.iter().map(completed).collect();
    answered.retain(Option::is_some);
    let all = answered.len();
    answered.sort_unstable();
    answered.dedup();
    assert_eq!(answered.len(), all, "{name}: something was answered twice");
}

/// What an event completes.
fn completed(event: &Event) -> Option<u64> {
    match event.kind {
        EventKind::ActivityCompleted { .. }
        | EventKind::TimerFired { .. }
        | EventKind::SubOrchestrationCompleted { .. } => event.source_event_id,
        _ => None,
    }
}

/// How often each step of the order was done.
pub(crate) fn times(ledger: &Events<String>, number: usize) -> Vec<usize> {
    let name = name(number);
    (0..STEPS).map(|step| ledger.count(|done| *done == format!("{name}/{step}"))).collect()
}
