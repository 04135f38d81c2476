//! An order as a durable workflow: activities, a timer, an event from outside, and a workflow of
//! its own for the parcel, on a private PostgreSQL that this program brings along.
//!
//! ```text
//! cargo run --example order_workflow
//! ```
//!
//! Kill it in the middle (`kill -9`, not even Ctrl-C) and run it again: the order goes on where it
//! was. An argument names the directory of the private PostgreSQL; without one it is in the
//! temporary directory.

use std::error::Error;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use duroxide::runtime::registry::ActivityRegistry;
use duroxide::runtime::{OrchestrationStatus, Runtime, RuntimeOptions};
use duroxide::{ActivityContext, Client, Either2, OrchestrationContext, OrchestrationRegistry};
use reveille_duroxide::PostgresProvider;
use reveille_embedded::{Embedded, EmbeddedOptions, command};

/// What the supervisor of the private PostgreSQL is started as: this program, too.
const SUPERVISOR: &str = "postgres";
/// What the courier says.
const PICKED_UP: &str = "picked up";

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    let supervisor = match command::this_program() {
        Ok(program) => vec![program.into_os_string(), SUPERVISOR.into()],
        Err(error) => return fail(&error),
    };
    if arguments.first().is_some_and(|first| first == SUPERVISOR) {
        return command::run(&supervisor, arguments.into_iter().skip(1), environment);
    }
    let dir = arguments.first().map_or_else(|| std::env::temp_dir().join("reveille-order-workflow"), PathBuf::from);
    let work = EmbeddedOptions::from_environment(environment, supervisor)
        .and_then(|options| Embedded::start(&options.data_dir(dir)))
        .map_err(Into::into)
        .and_then(|server| shop(&server));
    match work {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&*error),
    }
}

/// Runs one order to its end: the one that is under way, or a new one.
#[tokio::main]
async fn shop(server: &Embedded) -> Result<(), Box<dyn Error>> {
    let provider = PostgresProvider::options().url(server.connection_string("postgres")).open().await?;
    let store = Arc::new(provider.clone());
    // Short locks: a program that takes over from a killed one waits until its locks have ended.
    let second = Duration::from_secs(1);
    let options =
        RuntimeOptions { orchestrator_lock_timeout: second, worker_lock_timeout: second, ..Default::default() };
    let runtime = Runtime::start_with_options(store.clone(), activities(), orchestrations(), options).await;
    let client = Client::new(store);

    let order = begin_or_resume(&client).await?;
    let courier = bring_courier(&client, &order);
    let ended = client.wait_for_orchestration(&order, Duration::from_secs(120));
    let (_, ended) = tokio::join!(courier, ended);
    match ended? {
        OrchestrationStatus::Completed { output, .. } => println!("{order} is complete: {output}"),
        other => println!("{order} ended otherwise: {other:?}"),
    }
    runtime.shutdown(None).await;
    provider.close().await;
    Ok(())
}

/// The name of the first order that is not complete.
async fn begin_or_resume(client: &Client) -> Result<String, Box<dyn Error>> {
    let mut number = 1001;
    loop {
        let order = format!("order-{number}");
        match client.get_orchestration_status(&order).await? {
            OrchestrationStatus::NotFound => {
                client.start_orchestration(&order, "Order", "one alarm clock").await?;
                println!("{order} is new");
                return Ok(order);
            }
            OrchestrationStatus::Running { custom_status, .. } => {
                println!("{order} is under way and goes on: {}", custom_status.unwrap_or_default());
                return Ok(order);
            }
            _ => number += 1,
        }
    }
}

/// The world outside: the courier comes when the parcel waits for him.
async fn bring_courier(client: &Client, order: &str) -> Result<(), Box<dyn Error>> {
    let parcel = format!("{order}-parcel");
    let mut seen = 0;
    loop {
        let patience = Duration::from_secs(60);
        match client.wait_for_status_change(&parcel, seen, Duration::from_millis(100), patience).await? {
            OrchestrationStatus::Running { custom_status: Some(waits), .. } => {
                println!("  {parcel} {waits}");
                tokio::time::sleep(Duration::from_secs(2)).await;
                return Ok(client.raise_event(&parcel, PICKED_UP, "by bicycle").await?);
            }
            OrchestrationStatus::Running { custom_status_version, .. } => seen = custom_status_version,
            _ => return Ok(()),
        }
    }
}

fn orchestrations() -> OrchestrationRegistry {
    let order = |ctx: OrchestrationContext, what: String| async move {
        let reserved = ctx.schedule_activity("Reserve", what.clone()).await?;
        ctx.set_custom_status("reserved");
        // Reserved goods can be given back for a second; nobody is charged before.
        ctx.schedule_timer(Duration::from_secs(1)).await;
        let charged = ctx.schedule_activity("Charge", what.clone()).await?;
        ctx.set_custom_status("charged");
        let parcel = format!("{}-parcel", ctx.instance_id());
        let parcel = ctx.schedule_sub_orchestration_with_id("Parcel", parcel, what).await?;
        let thanks = ctx.schedule_activity("Thank", String::new()).await?;
        Ok([reserved, charged, parcel, thanks].join(", "))
    };
    let parcel = |ctx: OrchestrationContext, what: String| async move {
        let packed = ctx.schedule_activity("Pack", what).await?;
        ctx.set_custom_status("waits for the courier");
        let courier = ctx.schedule_wait(PICKED_UP);
        let handed = match ctx.select2(courier, ctx.schedule_timer(Duration::from_secs(60))).await {
            Either2::First(how) => ctx.schedule_activity("HandOver", how).await?,
            Either2::Second(()) => return Err("no courier came".to_owned()),
        };
        Ok(format!("{packed}, {handed}"))
    };
    OrchestrationRegistry::builder().register("Order", order).register("Parcel", parcel).build()
}

fn activities() -> ActivityRegistry {
    ActivityRegistry::builder()
        .register("Reserve", |_: ActivityContext, what: String| step(format!("reserved {what}")))
        .register("Charge", |_: ActivityContext, what: String| step(format!("charged for {what}")))
        .register("Pack", |_: ActivityContext, what: String| step(format!("packed {what}")))
        .register("HandOver", |_: ActivityContext, how: String| step(format!("handed over {how}")))
        .register("Thank", |_: ActivityContext, _: String| step("thanked the customer".to_owned()))
        .build()
}

/// What a real activity does takes a while, and can be seen.
async fn step(done: String) -> Result<String, String> {
    tokio::time::sleep(Duration::from_millis(200)).await;
    println!("  {done} (process {})", std::process::id());
    Ok(done)
}

#[expect(clippy::disallowed_methods, reason = "a program is where the environment is read")]
fn environment(name: &str) -> Option<OsString> {
    std::env::var_os(name)
}

fn fail(error: &dyn Error) -> ExitCode {
    eprintln!("order_workflow: {error}");
    ExitCode::FAILURE
}
