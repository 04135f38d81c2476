//! awa as a process that can be measured: `awa-peer <database URL>`, then commands on standard
//! input; see `jobload`.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use async_trait::async_trait;
use awa::model::insert::params_with;
use awa::{Client, InsertOpts, InsertParams, JobArgs, JobResult, QueueConfig, QueueStorage, QueueStorageConfig};
use jobload::{Args, Books, Job, Queue, Settings, Way, Working};
use serde::{Deserialize, Serialize};
use sqlx::PgPool;
use sqlx::postgres::PgPoolOptions;
use tokio::runtime::Handle;

/// From here on it completes through several shards. Chosen once, not searched for.
const TUNED_SLOTS: u32 = 512;
const TUNED_CONNECTIONS: u32 = 30;

/// What its `admin::state_counts` calls scheduled, retryable, available and running. That function
/// takes minutes.
const LEFT: &str = "
    with heads as materialized (
      select queue, priority, enqueue_shard, awa.sequence_next_value(seq_name) as next_seq from awa.queue_claim_heads
    )
    select (select count(*) from awa.deferred_jobs) + (select count(*) from awa.leases) + (
      select count(*)
      from heads
      join awa.ready_entries using (queue, priority, enqueue_shard)
      where lane_seq >= next_seq
    )";

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let url = std::env::args().nth(1).context("which database?")?;
    let pool = PgPool::connect(&url).await?;
    let store = QueueStorage::new(QueueStorageConfig::default())?;
    jobload::serve(Awa { url, pool, store }).await
}

struct Awa {
    url: String,
    pool: PgPool,
    /// With the workers' settings, for the fast ways.
    store: QueueStorage,
}

#[derive(Debug, Serialize, Deserialize, JobArgs)]
struct Noop {
    args: Args,
}

#[async_trait]
impl Queue for Awa {
    async fn install(&self) -> anyhow::Result<()> {
        // Its future cannot be shown to be `Send` here; blocking is harmless where nothing else
        // runs yet.
        let migrated = || Handle::current().block_on(awa::migrations::run(&self.pool));
        tokio::task::block_in_place(migrated)?;
        // A worker's first start is what turns a new database over to queue storage.
        let client = Client::builder(self.pool.clone()).queue("bench", QueueConfig::default());
        let client = client.register::<Noop, _, _>(|_, _| async { Ok(JobResult::Completed) }).build()?;
        client.start().await?;
        client.shutdown(Duration::from_secs(5)).await;
        Ok(())
    }

    fn ways(&self) -> Vec<&'static str> {
        vec!["one", "batch", "copy"]
    }

    async fn enqueue(&self, queue: &str, way: Way, jobs: &[Job]) -> anyhow::Result<()> {
        match way {
            Way::One | Way::Sql => {
                for job in jobs {
                    awa::insert_with(&self.pool, &noop(job), options(queue, job)).await?;
                }
            }
            Way::Batch => {
                self.store.enqueue_params_batch(&self.pool, &params(queue, jobs)?).await?;
            }
            Way::Copy => {
                self.store.enqueue_params_copy(&self.pool, &params(queue, jobs)?).await?;
            }
        }
        Ok(())
    }

    async fn work(&self, queues: &[String], settings: Settings, books: Arc<Books>) -> anyhow::Result<Box<dyn Working>> {
        let (pool, config) = match settings {
            Settings::Default => (PgPool::connect(&self.url).await?, QueueConfig::default()),
            Settings::Tuned => (tuned_pool(&self.url).await?, tuned()),
        };
        let mut client = Client::builder(pool.clone());
        for queue in queues {
            client = client.queue(queue, config.clone());
        }
        let client = client.register::<Noop, _, _>(move |noop: Noop, _| {
            books.ran(noop.args.n);
            async { Ok(JobResult::Completed) }
        });
        let client = client.build()?;
        client.start().await?;
        Ok(Box::new(Worker { client, pool }))
    }

    async fn left(&self) -> anyhow::Result<u64> {
        let left: i64 = sqlx::query_scalar(LEFT).fetch_one(&self.pool).await?;
        Ok(u64::try_from(left)?)
    }

    async fn clear(&self) -> anyhow::Result<()> {
        Ok(self.store.reset(&self.pool).await?)
    }
}

struct Worker {
    client: Client,
    pool: PgPool,
}

#[async_trait]
impl Working for Worker {
    async fn stop(self: Box<Self>) -> anyhow::Result<()> {
        self.client.shutdown(Duration::from_secs(10)).await;
        self.pool.close().await;
        Ok(())
    }
}

/// Jobs without a deadline take its short path; four is the most it takes of claimers.
fn tuned() -> QueueConfig {
    QueueConfig { max_workers: TUNED_SLOTS, deadline_duration: Duration::ZERO, claimers: 4, ..QueueConfig::default() }
}

async fn tuned_pool(url: &str) -> anyhow::Result<PgPool> {
    Ok(PgPoolOptions::new().max_connections(TUNED_CONNECTIONS).connect(url).await?)
}

fn noop(job: &Job) -> Noop {
    Noop { args: Args::new(job.n) }
}

fn options(queue: &str, job: &Job) -> InsertOpts {
    let run_at = job.delay.map(|delay| chrono::Utc::now() + delay);
    InsertOpts { queue: queue.to_owned(), run_at, ..InsertOpts::default() }
}

fn params(queue: &str, jobs: &[Job]) -> anyhow::Result<Vec<InsertParams>> {
    jobs.iter().map(|job| Ok(params_with(&noop(job), options(queue, job))?)).collect()
}
