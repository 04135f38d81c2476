//! apalis-postgres as a process that can be measured: `apalis-peer <database URL>`, then commands
//! on standard input; see `jobload`.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use apalis::prelude::{BackendExt, BoxDynError, Data, Strategy, TaskBuilder, WorkerBuilder, WorkerContext};
use apalis_postgres::{Config, PgPool, PgTask, PostgresStorage, Pubsub, queries};
use async_trait::async_trait;
use jobload::{Args, Books, Job, Queue, Settings, Way, Working};
use sqlx::postgres::PgPoolOptions;
use tokio::task::JoinSet;

/// As in the example of its documentation that is woken by NOTIFY.
const INTERVAL: Duration = Duration::from_secs(5);
/// Chosen once, not searched for.
const TUNED_BATCH: usize = 500;
const TUNED_CONNECTIONS: u32 = 30;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let url = std::env::args().nth(1).context("which database?")?;
    let pool = PgPool::connect(&url).await?;
    jobload::serve(Apalis { url, pool }).await
}

struct Apalis {
    url: String,
    pool: PgPool,
}

#[async_trait]
impl Queue for Apalis {
    async fn install(&self) -> anyhow::Result<()> {
        Ok(PostgresStorage::setup(&self.pool).await?)
    }

    fn ways(&self) -> Vec<&'static str> {
        vec!["one", "batch"]
    }

    async fn enqueue(&self, queue: &str, way: Way, jobs: &[Job]) -> anyhow::Result<()> {
        let mut connection = self.pool.acquire().await?;
        let calls = if way == Way::Batch { jobs.len() } else { 1 };
        for jobs in jobs.chunks(calls.max(1)) {
            let tasks: anyhow::Result<Vec<PgTask>> = jobs.iter().map(task).collect();
            queries::push_tasks(&mut *connection, queue, tasks?).await?;
        }
        Ok(())
    }

    async fn work(&self, queues: &[String], settings: Settings, books: Arc<Books>) -> anyhow::Result<Box<dyn Working>> {
        let pool = match settings {
            Settings::Default => PgPool::connect(&self.url).await?,
            Settings::Tuned => PgPoolOptions::new().max_connections(TUNED_CONNECTIONS).connect(&self.url).await?,
        };
        let mut worker = Worker { pool, contexts: Vec::new(), running: JoinSet::new() };
        for queue in queues {
            worker.begin(queue, settings, &books);
        }
        Ok(Box::new(worker))
    }

    async fn left(&self) -> anyhow::Result<u64> {
        let count = "select count(*) from apalis.jobs where status not in ('Done', 'Killed')";
        let left: i64 = sqlx::query_scalar(count).fetch_one(&self.pool).await?;
        Ok(u64::try_from(left)?)
    }

    async fn clear(&self) -> anyhow::Result<()> {
        sqlx::query("truncate apalis.jobs").execute(&self.pool).await?;
        Ok(())
    }
}

/// Each queue has a worker of its own here.
struct Worker {
    pool: PgPool,
    contexts: Vec<WorkerContext>,
    running: JoinSet<anyhow::Result<()>>,
}

impl Worker {
    fn begin(&mut self, queue: &str, settings: Settings, books: &Arc<Books>) {
        let config = Config::default().queue(queue);
        let config = match settings {
            Settings::Default => config,
            // Its own tests do without the second write, which records that a task has begun.
            Settings::Tuned => config.batch_size(TUNED_BATCH).lock_tasks(false),
        };
        let woken = Pubsub::new(self.pool.clone(), queue.to_owned());
        let backend = PostgresStorage::<Args>::new(&self.pool).with_config(config);
        let backend = backend.poll_with_strategy(Strategy::new().stream(woken).interval(INTERVAL));
        let context = WorkerContext::new(&format!("{queue}-{}", std::process::id()));
        let worker = WorkerBuilder::new(&context).backend(backend).data(Arc::clone(books)).build(noop);
        self.contexts.push(context);
        self.running.spawn(async move { Ok(worker.run().await?) });
    }
}

#[async_trait]
impl Working for Worker {
    async fn stop(mut self: Box<Self>) -> anyhow::Result<()> {
        for context in &self.contexts {
            context.stop()?;
        }
        while let Some(ended) = self.running.join_next().await {
            ended??;
        }
        self.pool.close().await;
        Ok(())
    }
}

async fn noop(args: Args, books: Data<Arc<Books>>) -> Result<(), BoxDynError> {
    books.ran(args.n);
    Ok(())
}

fn task(job: &Job) -> anyhow::Result<PgTask> {
    let task = TaskBuilder::new(serde_json::to_vec(&Args::new(job.n))?);
    let task = match job.delay {
        Some(delay) => task.run_after(delay),
        None => task,
    };
    Ok(task.build())
}
