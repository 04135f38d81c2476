//! The smallest queue that can be woken, for tests and benches of the wake engine.
//!
//! The queue itself is the example `examples/own_table`. Owns a [`Node`]: a database, a hub and a
//! dispatcher together, as one process would have them, and a list of what the engine did, for
//! tests to wait on.

mod node;

pub use node::{Node, NodeOptions};
pub use own_table::SOURCE;

use tokio_postgres::Client;

/// Makes the table.
///
/// # Panics
/// When it cannot be made.
pub async fn create(client: &Client) {
    own_table::create(client).await.expect("a table can be made");
}

/// Adds `count` rows to a queue without a hint or a wake-up.
///
/// # Panics
/// When it cannot.
pub async fn add_silently(client: &Client, queue: &str, count: i64, due_in_s: f64) {
    let insert = "insert into public.todo (queue, due_at)
         select $1, clock_timestamp() + make_interval(secs => $3) from generate_series(1, $2::bigint)";
    client.execute(insert, &[&queue, &count, &due_in_s]).await.expect("rows can be added");
}
