//! `graphile_worker` as a process that can be measured: `graphile-peer <database URL>`, then
//! commands on standard input; see `jobload`.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use async_trait::async_trait;
use graphile_worker::{
    IntoTaskHandlerResult, JobSpec, LocalQueueConfig, RawJobSpec, TaskHandler, Worker, WorkerContext, WorkerOptions,
    WorkerUtils,
};
use jobload::{Args, Books, Job, Queue, Settings, Way, Working};
use serde::{Deserialize, Serialize};
use sqlx::PgPool;
use sqlx::postgres::PgPoolOptions;
use tokio::task::JoinSet;

const SCHEMA: &str = "graphile_worker";
/// What its own benchmark of 200,000 jobs uses.
const TUNED_SLOTS: usize = 500;
const TUNED_LOCAL_QUEUE: usize = 5000;
const TUNED_BATCH_DELAY: Duration = Duration::from_millis(5);
const TUNED_CONNECTIONS: u32 = 30;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let url = std::env::args().nth(1).context("which database?")?;
    let pool = PgPool::connect(&url).await?;
    let utils = WorkerUtils::new(pool.clone(), SCHEMA);
    jobload::serve(Graphile { url, pool, utils }).await
}

struct Graphile {
    url: String,
    pool: PgPool,
    utils: WorkerUtils,
}

/// Its named queues run one job at a time; what others call a queue is a task here.
#[derive(Serialize, Deserialize)]
struct Noop(Args);

#[derive(Clone)]
struct Shared(Arc<Books>);

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Shared")
    }
}

impl TaskHandler for Noop {
    const IDENTIFIER: &'static str = "bench";

    async fn run(self, context: WorkerContext) -> impl IntoTaskHandlerResult {
        if let Some(Shared(books)) = context.get_ext::<Shared>() {
            books.ran(self.0.n);
        }
        Ok::<(), String>(())
    }
}

#[async_trait]
impl Queue for Graphile {
    async fn install(&self) -> anyhow::Result<()> {
        Ok(self.utils.migrate().await?)
    }

    fn ways(&self) -> Vec<&'static str> {
        vec!["one", "batch"]
    }

    async fn enqueue(&self, _: &str, way: Way, jobs: &[Job]) -> anyhow::Result<()> {
        if way == Way::Batch {
            let jobs: Result<Vec<RawJobSpec>, _> = jobs.iter().map(raw).collect();
            self.utils.add_raw_jobs(&jobs?).await?;
            return Ok(());
        }
        for job in jobs {
            self.utils.add_job(Noop(Args::new(job.n)), spec(job)).await?;
        }
        Ok(())
    }

    async fn work(&self, _: &[String], settings: Settings, books: Arc<Books>) -> anyhow::Result<Box<dyn Working>> {
        let options = WorkerOptions::default().schema(SCHEMA).add_extension(Shared(books)).define_job::<Noop>();
        let options = options.listen_os_shutdown_signals(false);
        let (pool, options) = match settings {
            // The pool it makes for itself has as many.
            Settings::Default => (connect(&self.url, 20).await?, options),
            Settings::Tuned => (connect(&self.url, TUNED_CONNECTIONS).await?, tuned(options)),
        };
        let worker = Arc::new(options.pg_pool(pool.clone()).init().await?);
        let mut running = JoinSet::new();
        let inner = Arc::clone(&worker);
        running.spawn(async move { Ok(inner.run().await?) });
        Ok(Box::new(Running { worker, pool, running }))
    }

    async fn left(&self) -> anyhow::Result<u64> {
        let count = "select count(*) from graphile_worker._private_jobs";
        let left: i64 = sqlx::query_scalar(count).fetch_one(&self.pool).await?;
        Ok(u64::try_from(left)?)
    }

    async fn clear(&self) -> anyhow::Result<()> {
        sqlx::query("truncate graphile_worker._private_jobs cascade").execute(&self.pool).await?;
        Ok(())
    }
}

struct Running {
    worker: Arc<Worker>,
    pool: PgPool,
    running: JoinSet<anyhow::Result<()>>,
}

#[async_trait]
impl Working for Running {
    async fn stop(mut self: Box<Self>) -> anyhow::Result<()> {
        self.worker.request_shutdown();
        while let Some(ended) = self.running.join_next().await {
            ended??;
        }
        self.pool.close().await;
        Ok(())
    }
}

fn tuned(options: WorkerOptions) -> WorkerOptions {
    let options = options.concurrency(TUNED_SLOTS).complete_job_batch_delay(TUNED_BATCH_DELAY);
    options.local_queue(LocalQueueConfig::default().with_size(TUNED_LOCAL_QUEUE))
}

async fn connect(url: &str, connections: u32) -> anyhow::Result<PgPool> {
    Ok(PgPoolOptions::new().max_connections(connections).connect(url).await?)
}

fn raw(job: &Job) -> anyhow::Result<RawJobSpec> {
    let payload = serde_json::to_value(Noop(Args::new(job.n)))?;
    Ok(RawJobSpec { identifier: Noop::IDENTIFIER.to_owned(), payload, spec: spec(job) })
}

fn spec(job: &Job) -> JobSpec {
    JobSpec { run_at: job.delay.map(|delay| chrono::Utc::now() + delay), ..JobSpec::default() }
}
