//! An order and the job that sends its receipt, in one transaction of sqlx: both exist, or neither
//! does.
//!
//! ```text
//! cargo run -p reveille --features sqlx --example transactional_enqueue -- postgres://localhost/shop
//! ```

use std::error::Error;
use std::time::Duration;

use reveille::database::{Database, DatabaseOptions};
use reveille::jobs::{Jobs, JobsOptions, NewJob, Worker};
use serde::{Deserialize, Serialize};

#[derive(Debug, Serialize, Deserialize)]
struct Receipt {
    order: i32,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = std::env::args().nth(1).ok_or("say where PostgreSQL is: postgres://…")?;
    let database = Database::connect(DatabaseOptions::new(url.as_str())).await?;
    database.migrate().await?;
    let jobs = Jobs::open(&database, JobsOptions::default());
    let worker = Worker::builder(&jobs)
        .queue("mail", 1)
        .handler::<Receipt, _>("receipt", |receipt, _| async move { println!("receipt for order {}", receipt.order) })
        .start()
        .await?;
    let pool = sqlx::PgPool::connect(&url).await?;
    sqlx::query("create table if not exists example_order (id serial primary key, paid boolean not null)")
        .execute(&pool)
        .await?;

    for paid in [false, true] {
        let mut transaction = pool.begin().await?;
        let insert = sqlx::query_scalar("insert into example_order (paid) values ($1) returning id").bind(paid);
        let order: i32 = insert.fetch_one(&mut *transaction).await?;
        let receipt = NewJob::new("receipt", &Receipt { order })?.queue("mail");
        let added = jobs.enqueue_in_sqlx(&mut *transaction, vec![receipt]).await?;
        if paid {
            transaction.commit().await?;
            println!("order {order} is paid, and job {} is on its way", added[0].id);
        } else {
            transaction.rollback().await?;
            println!("order {order} was not paid: there is neither an order nor a job {}", added[0].id);
        }
    }

    while jobs.figures().kinds.values().map(|kind| kind.success).sum::<u64>() == 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    worker.drain(Duration::from_secs(5)).await;
    jobs.close().await;
    pool.close().await;
    database.close().await;
    Ok(())
}
