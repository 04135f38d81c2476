//! From a worker's free slots to the jobs it holds.
//!
//! Owns the dispatcher of jobs and its one connection. Promises that one statement claims for all
//! free slots of a worker, that no worker polls while hints arrive, and that a lost claim is given
//! back without counting an attempt. Counts an attempt when it is claimed, so that a job which
//! kills its worker cannot run for ever.
//!
//! Next: `shares` (slots for each queue), `low_water` (where to begin), then [`super::worker`].

mod give_back;
mod low_water;
mod shares;

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use reveille_wake::{
    Cause, DispatcherHandle, DispatcherOptions, Round, RoundFailed, RoundResult, Runner, Source, WokenKey,
};
use tokio_postgres::Row;
use tracing::warn;

use super::context::JobsContext;
use super::event::{About, JobEvent};
use super::id::{JobId, JobToken};
use super::lifecycle::State;
use super::ready::{JobSource, Queue};
use super::settle::{Ending, Settlement, Settler};
use super::statements::{NEXT, TAKE};
use super::worker::{Claiming, WorkerState};
use crate::database::{Connection, DatabaseError, Param, Purpose};
use crate::service::Claims;
use crate::service::lost_claims::SentClaim;
use give_back::Release;
use low_water::LowWater;
use shares::shares;

/// A job that was claimed.
#[derive(Debug)]
pub(super) struct Claimed {
    pub(super) token: JobToken,
    pub(super) about: About,
    pub(super) queue: Queue,
    pub(super) priority: i16,
    pub(super) max_attempts: i16,
    pub(super) args: Vec<u8>,
    pub(super) timeout: Option<Duration>,
    pub(super) tags: Vec<String>,
    pub(super) metadata: Option<Vec<u8>>,
    pub(super) waited: Duration,
    was_due: low_water::Place,
    /// Until it is in the worker's hands, or given back.
    claiming: Claiming,
}

impl Claimed {
    /// When it was due, and its id: the order in which jobs of a priority begin.
    pub(super) fn was_due(&self) -> low_water::Place {
        self.was_due
    }
}

/// Takes the demands of workers. Starts with the first one.
#[derive(Debug)]
pub(super) struct Claimer {
    context: Arc<JobsContext>,
    settler: Arc<Settler>,
    claims: Claims<JobSource, ClaimSource>,
}

impl Claimer {
    pub(super) fn new(context: &Arc<JobsContext>, settler: &Arc<Settler>, runner: Runner<Queue>) -> Self {
        let claims = Claims::new(context.notifier.notifier(), runner);
        Self { context: Arc::clone(context), settler: Arc::clone(settler), claims }
    }

    pub(super) fn handle(&self) -> &DispatcherHandle<ClaimSource> {
        self.claims.handle(|| {
            let context = &self.context;
            super::upkeep::start(context);
            let source = ClaimSource {
                context: Arc::clone(context),
                settler: Arc::clone(&self.settler),
                connection: tokio::sync::Mutex::default(),
                marks: Mutex::default(),
                due_unread: Mutex::default(),
            };
            let options = DispatcherOptions::default().poll_mode(context.options.poll_mode);
            (source, options.fallback_interval(context.options.everywhere()))
        })
    }
}

/// Claims jobs for the dispatcher.
pub(super) struct ClaimSource {
    context: Arc<JobsContext>,
    settler: Arc<Settler>,
    /// Opened with the first claim round, and again when it broke.
    connection: tokio::sync::Mutex<Option<Connection>>,
    marks: Mutex<HashMap<Queue, LowWater>>,
    /// Queues that had fewer jobs than wanted, and whose next due time was not read, so that those
    /// jobs begin first.
    due_unread: Mutex<HashSet<Queue>>,
}

/// One worker's part of a claim round.
struct Search<'s> {
    worker: &'s WorkerState,
    /// While it lives, a drain of the worker waits.
    claiming: Claiming,
    /// The queues that were woken.
    queues: Vec<Queue>,
    jobs: Vec<Claimed>,
    /// The queues that have no more jobs for now.
    exhausted: HashMap<Queue, Exhausted>,
}

/// A queue without jobs to claim.
#[derive(Debug, Default, Clone, Copy)]
struct Exhausted {
    /// Until its next job is due.
    due: Option<Duration>,
    /// Whether it has due jobs that could not be claimed now.
    contended: bool,
}

impl Source for ClaimSource {
    type Key = Queue;
    type Request = Arc<WorkerState>;
    type Lease = Vec<Claimed>;

    async fn claim(
        &self,
        round: Round<Queue, Arc<WorkerState>>,
    ) -> Result<RoundResult<Queue, Vec<Claimed>>, RoundFailed> {
        if round
            .keys
            .iter()
            .all(|woken| matches!(woken.cause, Cause::Fallback | Cause::FallbackPolling | Cause::Heartbeat))
        {
            self.context.reporter.emit(&JobEvent::Polled);
        }
        let mut connection = self.connection.lock().await;
        let (mut result, mut dues) = (RoundResult::default(), HashMap::new());
        for demand in &round.waiting {
            let woken = || round.keys.iter().filter(|woken| demand.keys.contains(&woken.key));
            let queues = woken().map(|woken| Arc::clone(&woken.key)).collect();
            let claiming = Claiming::of(&demand.request);
            let mut search =
                Search { worker: &demand.request, claiming, queues, jobs: Vec::new(), exhausted: HashMap::new() };
            let due_unread = self.take_due_unread(woken());
            if let Err(error) = self.search(&mut connection, &mut search, &due_unread).await {
                warn!(%error, "could not claim jobs");
                self.give_back(result.leases.into_iter().flat_map(|(_, jobs)| jobs).chain(search.jobs).collect()).await;
                return Err(RoundFailed);
            }
            for queue in search.queues {
                match search.exhausted.get(&queue) {
                    None => result.more.push(queue),
                    Some(exhausted) => {
                        if let Some(due) = exhausted.due {
                            let soonest = dues.entry(Arc::clone(&queue)).or_insert(due);
                            *soonest = due.min(*soonest);
                        }
                        if exhausted.contended {
                            result.contended.push(queue);
                        }
                    }
                }
            }
            if !search.jobs.is_empty() {
                result.leases.push((demand.id, search.jobs));
            }
        }
        result.dues.extend(dues);
        Ok(result)
    }

    async fn release(&self, leases: Vec<Vec<Claimed>>) {
        self.give_back(leases.into_iter().flatten().collect()).await;
    }
}

impl ClaimSource {
    /// Claims until there are as many jobs as wanted, or no more. A queue of `due_unread` is
    /// claimed from only if the read of its next due time finds a due job.
    async fn search(
        &self,
        kept: &mut Option<Connection>,
        search: &mut Search<'_>,
        due_unread: &[Queue],
    ) -> Result<(), DatabaseError> {
        let connection = match kept {
            Some(connection) if !connection.is_closed() => connection,
            other => other.insert(self.context.database.connection(Purpose::Dedicated("claim")).await?),
        };
        let want = search.worker.want();
        if want == 0 {
            // An earlier demand of this round filled the worker: there is more, but no room now.
            let later = Exhausted { due: None, contended: true };
            search.exhausted.extend(search.queues.iter().map(|queue| (Arc::clone(queue), later)));
        }
        // While reads of a queue rest, its next due time cannot be read, and only a claim finds
        // jobs that were added since.
        let due_unread: Vec<Queue> = due_unread.iter().filter(|queue| self.rest(queue).is_zero()).cloned().collect();
        if want > 0 && !due_unread.is_empty() {
            self.read_next_due(connection, search, &due_unread).await?;
            // A job that is due was added since, or is locked by another transaction.
            search.exhausted.retain(|_, exhausted| !exhausted.contended);
        }
        let mut open: Vec<Queue> =
            search.queues.iter().filter(|q| !search.exhausted.contains_key(*q)).cloned().collect();
        while search.jobs.len() < want && !open.is_empty() {
            let left = want - search.jobs.len();
            let quotas = shares(&open, left, |queue| search.worker.weight(queue));
            let found = self.take(connection, search, &quotas, left).await?;
            let filled = found.iter().sum::<usize>() >= left;
            // A queue that had less than its share has no more; the others may, if there is still
            // room.
            open = quotas
                .iter()
                .zip(&found)
                .filter(|((_, quota), found)| *found >= quota)
                .map(|((q, _), _)| Arc::clone(q))
                .collect();
            let short: Vec<Queue> = quotas.iter().map(|(q, _)| q).filter(|q| !open.contains(q)).cloned().collect();
            match () {
                () if filled || short.is_empty() => {}
                () if search.jobs.is_empty() => self.read_next_due(connection, search, &short).await?,
                // They count as having more: the next claim round reads their next due time, while
                // these jobs run.
                () => self.due_unread().extend(short),
            }
        }
        Ok(())
    }

    /// One claim; returns how many jobs it found in each queue.
    async fn take(
        &self,
        connection: &Connection,
        search: &mut Search<'_>,
        quotas: &[(Queue, usize)],
        left: usize,
    ) -> Result<Vec<usize>, DatabaseError> {
        let began = Instant::now();
        let (names, mosts): (Vec<&str>, Vec<i32>) =
            quotas.iter().map(|(queue, quota)| (&**queue, size(*quota))).unzip();
        let (mut times, mut ids) = (Vec::new(), Vec::new());
        for (queue, _) in quotas {
            self.marks().entry(Arc::clone(queue)).or_default().begin(began, &mut times, &mut ids);
        }
        let (nonce, lease, want) = (fastrand::i64(..), search.worker.lease.as_secs_f64(), i64::from(size(left)));
        let queues = names.iter().map(ToString::to_string).collect();
        let release = Release { context: Arc::clone(&self.context), claiming: search.claiming.clone(), queues };
        let sent = SentClaim::new(&self.context.service, release, vec![nonce]);
        let options = &self.context.options;
        let (keep, keep_dead) = (options.keep_done.as_secs_f64(), options.keep_dead.map(|keep| keep.as_secs_f64()));
        let params: [Param<'_>; 10] =
            [&names, &mosts, &times, &ids, &want, &&*search.worker.name, &nonce, &lease, &keep, &keep_dead];
        let rows = connection.query(&TAKE, &params).await?;
        sent.in_hand_but(Vec::new());
        let took = began.elapsed();
        let mut found = vec![0; quotas.len()];
        for row in &rows {
            let (name, ended): (&str, Option<&str>) = (row.get("queue"), row.get("ended"));
            let Some(place) = names.iter().position(|queue| *queue == name) else { continue };
            found[place] += 1;
            let queue = &quotas[place].0;
            match ended.and_then(State::parse) {
                Some(state) => self.context.reporter.emit(&JobEvent::Ended { job: about(row, queue), state }),
                None => search.jobs.push(claimed(row, queue, nonce, &search.claiming)),
            }
        }
        let mut marks = self.marks();
        for (queue, _) in quotas {
            let places = search.jobs.iter().filter(|job| job.queue == *queue).map(|job| (job.priority, job.was_due));
            marks.entry(Arc::clone(queue)).or_default().end(began, took, rows.len(), places);
        }
        drop(marks);
        for ((queue, _), _) in quotas.iter().zip(&found).filter(|(_, found)| **found > 0) {
            self.context.notifier.leased(queue, search.worker.lease);
        }
        Ok(found)
    }

    /// Reads when the next job is due in queues that have no more for now.
    async fn read_next_due(
        &self,
        connection: &Connection,
        search: &mut Search<'_>,
        queues: &[Queue],
    ) -> Result<(), DatabaseError> {
        let began = Instant::now();
        for queue in queues {
            let wait = self.rest(queue);
            // The claim did not read all jobs: a later claim round must.
            let due = (!wait.is_zero()).then_some(wait);
            search.exhausted.insert(Arc::clone(queue), Exhausted { due, contended: false });
        }
        let names: Vec<&str> =
            queues.iter().filter(|queue| search.exhausted[*queue].due.is_none()).map(|queue| &**queue).collect();
        if names.is_empty() {
            return Ok(());
        }
        let rows = connection.query(&NEXT, &[&names]).await?;
        let took = began.elapsed();
        for row in rows {
            let queue: Queue = Arc::from(row.get::<_, &str>("queue"));
            let due = row.get::<_, Option<f64>>("due_s").map(|due| Duration::from_secs_f64(due.clamp(0.0, 1e9)));
            let quiet = row.get::<_, bool>("quiet").then(|| self.context.options.quiet());
            self.marks().entry(Arc::clone(&queue)).or_default().read_next_due(began, took);
            let due = [due, quiet].into_iter().flatten().min();
            search.exhausted.insert(queue, Exhausted { due, contended: row.get("contended") });
        }
        Ok(())
    }

    /// How long until the next due time of the queue may be read.
    fn rest(&self, queue: &Queue) -> Duration {
        let now = Instant::now();
        let wait = |mark: &LowWater| mark.claim_wait(now).max(mark.next_due_wait(now));
        self.marks().get(queue).map_or(Duration::ZERO, wait)
    }

    async fn give_back(&self, jobs: Vec<Claimed>) {
        let settle = |job: Claimed| Settlement {
            token: job.token,
            about: job.about,
            queue: job.queue,
            ending: Ending::Release,
            took: Duration::ZERO,
            or_lost: false,
            interrupted: false,
        };
        let claims: Vec<Claiming> = jobs.iter().map(|job| job.claiming.clone()).collect();
        self.settler.settle_many(jobs.into_iter().map(settle).collect()).await;
        claims.iter().for_each(Claiming::given_back);
    }

    /// Those of the keys that are in this round only because their next due time was not read.
    fn take_due_unread<'r>(&self, woken: impl Iterator<Item = &'r WokenKey<Queue>>) -> Vec<Queue> {
        let mut due_unread = self.due_unread();
        let left =
            woken.filter(|woken| due_unread.remove(&woken.key) && matches!(woken.cause, Cause::More | Cause::Started));
        left.map(|woken| Arc::clone(&woken.key)).collect()
    }

    fn due_unread(&self) -> std::sync::MutexGuard<'_, HashSet<Queue>> {
        self.due_unread.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn marks(&self) -> std::sync::MutexGuard<'_, HashMap<Queue, LowWater>> {
        self.marks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn about(row: &Row, queue: &Queue) -> About {
    About {
        id: JobId(row.get("id")),
        kind: Arc::from(row.get::<_, Option<&str>>("kind").unwrap_or_default()),
        queue: Arc::clone(queue),
        attempt: row.get("attempt"),
        item_id: row.get::<_, Option<&[u8]>>("metadata").and_then(item_id),
    }
}

fn claimed(row: &Row, queue: &Queue, nonce: i64, claiming: &Claiming) -> Claimed {
    let id = JobId(row.get("id"));
    let timeout: Option<i64> = row.get("timeout_ms");
    Claimed {
        token: JobToken { id, epoch: row.get("epoch"), nonce },
        about: about(row, queue),
        queue: Arc::clone(queue),
        priority: row.get("priority"),
        max_attempts: row.get("max_attempts"),
        args: row.get::<_, Option<Vec<u8>>>("args").unwrap_or_default(),
        timeout: timeout.map(|timeout| Duration::from_millis(timeout.unsigned_abs())),
        tags: row.get::<_, Option<Vec<String>>>("tags").unwrap_or_default(),
        metadata: row.get("metadata"),
        waited: Duration::from_secs_f64(row.get::<_, f64>("waited_s").clamp(0.0, 1e9)),
        was_due: (row.get("was_due_at"), id.0),
        claiming: claiming.clone(),
    }
}

fn item_id(metadata: &[u8]) -> Option<Arc<str>> {
    let value: serde_json::Value = serde_json::from_slice(metadata).ok()?;
    match value.get("item_id")? {
        serde_json::Value::String(text) => Some(Arc::from(&**text)),
        serde_json::Value::Null => None,
        other => Some(Arc::from(other.to_string())),
    }
}

fn size(count: usize) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}
