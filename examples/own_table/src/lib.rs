//! A queue in a table of your own that is woken instead of polled: one plain table, as any
//! application may have.
//!
//! Owns the table `todo`, what the heartbeat asks about it ([`SURVEY`]), the claim ([`Todo`]),
//! [`push`] and [`finish`]. `main.rs` puts them together as one process would. Statements that run
//! on Reveille's connections name their schema, because these resolve names in `pg_catalog` alone.
//!
//! The engine's own tests and benches run on this queue, so that they say something about the
//! engine alone.

mod source;

pub use source::{Taken, Todo};

use reveille::database::{Database, DatabaseError, Statement};
use reveille_wake::Cause;
use tokio_postgres::Client;
use tokio_postgres::types::Type;

/// The name of the source in hints.
pub const SOURCE: &str = "todo";

/// The next due time of every waited queue, by the database's clock: one step into the index for
/// each queue, however long it is.
pub const SURVEY: &str = "select ordinal, extract(epoch from next.due_at - clock_timestamp()) as due_s \
     from unnest({keys}) with ordinality as waited (key, ordinal) \
     cross join lateral (select due_at from public.todo where queue = waited.key order by due_at limit 1) as next \
     where next.due_at < clock_timestamp() + make_interval(secs => {horizon})";

const TABLE: &str = "create table if not exists public.todo (
        id bigint generated always as identity primary key,
        queue text not null,
        due_at timestamptz not null default clock_timestamp(),
        epoch bigint not null default 0
    );
    create index if not exists todo_due on public.todo (queue, due_at)";

static PUSH: Statement = Statement {
    name: "own_table/push",
    sql: "-- Adds $2 rows to queue $1, due in $3 seconds.
insert into public.todo (queue, due_at) select $1, clock_timestamp() + make_interval(secs => $3) from generate_series(1, $2)",
    types: &[Type::TEXT, Type::INT8, Type::FLOAT8],
};

static FINISH: Statement = Statement {
    name: "own_table/finish",
    sql: "-- Deletes row $1, unless another worker has claimed it since epoch $2.
delete from public.todo where todo.id = $1 and todo.epoch = $2",
    types: &[Type::INT8, Type::INT8],
};

/// Makes the table, unless it is there.
pub async fn create(client: &Client) -> Result<(), tokio_postgres::Error> {
    client.batch_execute(TABLE).await
}

/// Commits rows, and wakes the workers that wait for their queue, here and on other nodes.
pub async fn push(database: &Database, queue: &str, count: i64) -> Result<(), DatabaseError> {
    let connection = database.acquire().await?;
    connection.execute(&PUSH, &[&queue, &count, &0.0_f64]).await?;
    database.broadcaster().announce(SOURCE, &queue.to_owned(), Cause::Pushed);
    Ok(())
}

/// Deletes the row. False if its lease had ended and another worker has claimed it.
pub async fn finish(database: &Database, taken: &Taken) -> Result<bool, DatabaseError> {
    Ok(database.acquire().await?.execute(&FINISH, &[&taken.id, &taken.epoch]).await? == 1)
}
