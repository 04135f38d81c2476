//! The smallest queue that can be woken: one plain table, as any application may have.
//!
//! Owns the table `todo`, the claim, and a [`Node`]: a database, a hub and a dispatcher together, as one process would
//! have them. The engine's tests and benches run on it, so that they say something about the engine and not about a door.

mod node;
mod source;

pub use node::{Node, NodeOptions};
pub use source::{Taken, Todo};

use tokio_postgres::Client;

/// The name of the source in hints.
pub const SOURCE: &str = "todo";

/// The next due of every waited queue, by the database's clock: one step into the index for each, however long it is.
pub(crate) const SURVEY: &str = "select waited.key, extract(epoch from next.due_at - clock_timestamp())::float8 as due_s \
     from unnest({keys}) as waited (key) \
     cross join lateral (select due_at from public.todo where queue = waited.key order by due_at limit 1) as next \
     where next.due_at < clock_timestamp() + make_interval(secs => {horizon})";

/// Makes the table.
///
/// # Panics
/// When it cannot be made.
pub async fn create(client: &Client) {
    let table = "create table todo (
            id bigint generated always as identity primary key,
            queue text not null,
            due_at timestamptz not null default clock_timestamp(),
            epoch bigint not null default 0
        );
        create index todo_due on todo (queue, due_at)";
    client.batch_execute(table).await.expect("a table can be made");
}

/// Adds `count` rows to a queue, behind the engine's back: no hint, no ring.
///
/// # Panics
/// When it cannot.
pub async fn add_silently(client: &Client, queue: &str, count: i64, due_in_s: f64) {
    let insert = "insert into public.todo (queue, due_at)
         select $1, clock_timestamp() + make_interval(secs => $3) from generate_series(1, $2::bigint)";
    client.execute(insert, &[&queue, &count, &due_in_s]).await.expect("rows can be added");
}
