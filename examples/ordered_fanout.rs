//! One stream of orders, read by two teams independently, each customer's orders in order, on a
//! private PostgreSQL that this program brings along.
//!
//! ```text
//! cargo run -p reveille --example ordered_fanout
//! ```
//!
//! The kitchen fails on one order and gets it again, which does not disturb the ledger. An argument
//! names the directory of the private PostgreSQL; without one it is in the temporary directory.

use std::error::Error;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use reveille::database::{Database, DatabaseOptions};
use reveille::messages::{
    Batch, GroupName, Messages, MessagesOptions, PartitionName, Pop, PushItem, QueueName, Settlement,
};
use reveille::uuid::Uuid;
use reveille_embedded::{Embedded, EmbeddedOptions, command};

/// What the supervisor of the private PostgreSQL is started as: this program, too.
const SUPERVISOR: &str = "postgres";
const CUSTOMERS: [&str; 3] = ["ada", "grace", "linus"];
const ORDERS: usize = 4;

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    let supervisor = match command::this_program() {
        Ok(program) => vec![program.into_os_string(), SUPERVISOR.into()],
        Err(error) => return fail(&error),
    };
    if arguments.first().is_some_and(|first| first == SUPERVISOR) {
        return command::run(&supervisor, arguments.into_iter().skip(1), environment);
    }
    let dir = arguments.first().map_or_else(|| std::env::temp_dir().join("reveille-ordered-fanout"), PathBuf::from);
    let work = EmbeddedOptions::from_environment(environment, supervisor)
        .and_then(|options| Embedded::start(&options.data_dir(dir)))
        .map_err(Into::into)
        .and_then(|server| run(&server));
    match work {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&*error),
    }
}

#[tokio::main]
async fn run(server: &Embedded) -> Result<(), Box<dyn Error>> {
    let database = Database::connect(DatabaseOptions::new(server.connection_string("postgres"))).await?;
    database.migrate().await?;
    let messages = Messages::new(&database, MessagesOptions::default());
    // A queue of its own for every run.
    let queue = QueueName::new(format!("orders-{}", Uuid::now_v7()))?;

    let (kitchen, ledger, ordered) = tokio::join!(
        read(&messages, &queue, "kitchen", Some("grace's order 2")),
        read(&messages, &queue, "ledger", None),
        order(&messages, &queue),
    );
    ordered?;
    println!("the kitchen did {} orders, the ledger {}", kitchen?, ledger?);
    messages.close().await;
    database.close().await;
    Ok(())
}

/// Every customer orders a few times.
async fn order(messages: &Messages, queue: &QueueName) -> Result<(), Box<dyn Error>> {
    for number in 1..=ORDERS {
        for customer in CUSTOMERS {
            let order = PushItem::new(queue.clone(), format!("{customer}'s order {number}"));
            messages.push_one(order.partition(PartitionName::new(customer)?)).await?;
        }
    }
    Ok(())
}

/// A team that waits for orders until it has seen all of them. It fails on one order, once.
async fn read(
    messages: &Messages,
    queue: &QueueName,
    team: &str,
    mut stumble: Option<&str>,
) -> Result<usize, Box<dyn Error>> {
    let pop = Pop::queue(queue.clone()).group(GroupName::new(team)?).batch(10).wait(Duration::from_secs(30));
    let mut done = 0;
    while done < CUSTOMERS.len() * ORDERS {
        let Some(batch) = messages.pop(pop.clone()).await? else { return Err("nothing came".into()) };
        done += work(messages, &batch, team, &mut stumble).await?;
    }
    Ok(done)
}

/// Does one batch; how many orders of it are done.
async fn work(
    messages: &Messages,
    batch: &Batch,
    team: &str,
    stumble: &mut Option<&str>,
) -> Result<usize, Box<dyn Error>> {
    let mut done = 0;
    for lease in &batch.partitions {
        let mut settlement = Settlement::complete(lease);
        for message in &lease.messages {
            let order = String::from_utf8_lossy(message.payload.as_bytes()).into_owned();
            if *stumble == Some(&*order) {
                println!("{team}: {order} burnt, once more");
                *stumble = None;
                // Later orders of this customer wait for it: a partition keeps its order.
                settlement = Settlement::fail(lease, message.seq, "burnt");
                break;
            }
            println!("{team}: {order}");
            done += 1;
        }
        for settled in messages.settle(vec![settlement]).await {
            if !settled?.holds() {
                return Err("somebody else has the lease".into());
            }
        }
    }
    Ok(done)
}

fn fail(error: &dyn Error) -> ExitCode {
    eprintln!("ordered_fanout: {error}");
    ExitCode::FAILURE
}

#[expect(clippy::disallowed_methods, reason = "a command line is where the environment is read")]
fn environment(name: &str) -> Option<OsString> {
    std::env::var_os(name)
}
