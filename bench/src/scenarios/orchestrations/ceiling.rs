//! The limit for every durable provider: the activities themselves, and one durable commit at the
//! end of each.

use std::time::{Duration, Instant};

use anyhow::Context;
use reveille_testkit::scenario::Plain;
use tokio::task::JoinSet;

/// Activities of each orchestration in duroxide's stress test.
const TASKS: f64 = 5.0;
const SPAN: Duration = Duration::from_secs(2);

/// Orchestrations per second of slots that do nothing but their activities and a commit of one row
/// for each.
pub(super) async fn of_commits(url: &str, slots: u64, delay_ms: u64) -> anyhow::Result<f64> {
    let admin = Plain::connect(url).await?;
    admin.client.batch_execute("drop table if exists ended; create table ended (activity bigint)").await?;
    let mut connections = Vec::new();
    for _ in 0..slots {
        connections.push(Plain::connect(url).await?);
    }
    let began = Instant::now();
    let mut running = JoinSet::new();
    for connection in connections {
        running.spawn(async move {
            // The whole connection moves: with its client alone, the task that drives it would end.
            let connection = connection;
            let end = connection.client.prepare("insert into ended values ($1)").await?;
            let mut done = 0_i64;
            while began.elapsed() < SPAN {
                tokio::time::sleep(Duration::from_millis(delay_ms)).await;
                connection.client.execute(&end, &[&done]).await?;
                done += 1;
            }
            Ok::<_, tokio_postgres::Error>(())
        });
    }
    while let Some(ended) = running.join_next().await {
        ended?.context("a commit failed")?;
    }
    let elapsed = began.elapsed().as_secs_f64();
    let done = admin.client.query_one("select count(*)::float8 from ended", &[]).await?.get::<_, f64>(0);
    Ok(done / TASKS / elapsed)
}
