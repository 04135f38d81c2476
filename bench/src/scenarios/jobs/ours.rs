//! Our queue, as the child process that is measured: this program again.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use jobload::{Args, Books, Queue, Settings, Way, Working};
use reveille::database::{Database, DatabaseOptions};
use reveille::jobs::{Job, Jobs, JobsOptions, NewJob, RunningWorker, Worker};
use reveille_testkit::scenario::Plain;
use tokio::sync::Mutex;

/// The first argument that makes this program the child which measures our queue.
pub(crate) const CHILD: &str = "measure-reveille-jobs";
const KIND: &str = "bench";
/// As many as the peers have when they are tuned.
const TUNED_SLOTS: usize = 512;
const TUNED_PREFETCH: usize = 1000;
/// The argument behind the URL with which the child's handlers never end, and leases are short.
pub(super) const HOLDS: &str = "holds";
/// Of a worker that is about to be killed.
const SHORT_LEASE: Duration = Duration::from_secs(2);

/// The child's side.
pub(crate) fn measure(url: &str, manner: Option<&str>) -> anyhow::Result<()> {
    let holds = manner == Some(HOLDS);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let database = Database::connect(DatabaseOptions::new(url)).await?;
        let jobs = Jobs::open(&database, JobsOptions::default());
        let plain = Plain::connect(url).await?;
        jobload::serve(Ours { database, jobs, plain, url: url.to_owned(), spare: Mutex::default(), holds }).await
    })
}

struct Ours {
    database: Database,
    jobs: Jobs,
    /// As a program in another language would have it.
    plain: Plain,
    url: String,
    /// Connections of callers that copy in transactions of their own.
    spare: Mutex<Vec<Plain>>,
    /// Whether its handlers hold their jobs for as long as the process lives.
    holds: bool,
}

#[async_trait]
impl Queue for Ours {
    async fn install(&self) -> anyhow::Result<()> {
        self.database.migrate().await?;
        Ok(())
    }

    fn ways(&self) -> Vec<&'static str> {
        // The last one makes the backlogs, and those of the saved results were made by batches.
        vec!["one", "copy", "batch"]
    }

    async fn enqueue(&self, queue: &str, way: Way, jobs: &[jobload::Job]) -> anyhow::Result<()> {
        match way {
            Way::One => {
                for job in jobs {
                    self.jobs.enqueue(new_job(queue, job)?).await?;
                }
            }
            Way::Batch => {
                for enqueued in self.jobs.enqueue_many(new_jobs(queue, jobs)?).await {
                    enqueued?;
                }
            }
            Way::Copy => {
                let spare = self.spare.lock().await.pop();
                let mut plain = match spare {
                    Some(plain) => plain,
                    None => Plain::connect(&self.url).await?,
                };
                let transaction = plain.client.transaction().await?;
                self.jobs.enqueue_copy_in(&transaction, new_jobs(queue, jobs)?).await?;
                transaction.commit().await?;
                self.spare.lock().await.push(plain);
            }
            Way::Sql => {
                for job in jobs {
                    enqueue_by_sql(&self.plain, queue, job.n).await?;
                }
            }
        }
        Ok(())
    }

    async fn work(&self, queues: &[String], settings: Settings, books: Arc<Books>) -> anyhow::Result<Box<dyn Working>> {
        let mut worker = Worker::builder(&self.jobs);
        for queue in queues {
            worker = worker.queue(queue, 1);
        }
        if settings == Settings::Tuned {
            worker = worker.slots(TUNED_SLOTS).prefetch(TUNED_PREFETCH);
        }
        let holds = self.holds;
        if holds {
            worker = worker.slots(TUNED_SLOTS).lease(SHORT_LEASE);
        }
        let worker = worker.handler::<Args, _>(KIND, move |args: Args, _: Job| {
            books.ran(args.n);
            async move {
                if holds {
                    std::future::pending::<()>().await;
                }
                Ok::<(), String>(())
            }
        });
        Ok(Box::new(Running(worker.start().await?)))
    }

    async fn left(&self) -> anyhow::Result<u64> {
        let row = self.plain.client.query_one("select count(*) from reveille.job", &[]).await?;
        Ok(u64::try_from(row.get::<_, i64>(0))?)
    }

    async fn clear(&self) -> anyhow::Result<()> {
        let empty = "truncate reveille.job, reveille.job_body, reveille.job_done";
        Ok(self.plain.client.batch_execute(empty).await?)
    }
}

struct Running(RunningWorker);

#[async_trait]
impl Working for Running {
    async fn stop(self: Box<Self>) -> anyhow::Result<()> {
        self.0.drain(Duration::from_secs(10)).await;
        Ok(())
    }
}

/// As a program in another language would, in the transaction that the connection is in, if any.
pub(super) async fn enqueue_by_sql(plain: &Plain, queue: &str, n: u64) -> anyhow::Result<()> {
    let args = serde_json::to_string(&Args::new(n))?;
    let enqueue = "select reveille.enqueue($1, $2::text::json, queue => $3)";
    plain.client.query(enqueue, &[&KIND, &args, &queue]).await?;
    Ok(())
}

fn new_jobs(queue: &str, jobs: &[jobload::Job]) -> anyhow::Result<Vec<NewJob>> {
    jobs.iter().map(|job| new_job(queue, job)).collect()
}

fn new_job(queue: &str, job: &jobload::Job) -> anyhow::Result<NewJob> {
    let new = NewJob::new(KIND, &Args::new(job.n))?.queue(queue);
    Ok(match job.delay {
        Some(delay) => new.delay(delay),
        None => new,
    })
}
