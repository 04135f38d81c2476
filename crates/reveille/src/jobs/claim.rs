//! From a worker's free slots to the jobs it holds.
//!
//! Owns the dispatcher of jobs and its one connection. Promises that one statement claims for all
//! free slots of a worker, that nobody polls, and that what was claimed and reached nobody is given
//! back, uncharged. Counts an attempt when it is claimed, so that a job which kills its worker
//! cannot run for ever.
//!
//! Next: `shares` (whose turn it is), `marks` (where to begin), then [`super::worker`].

mod give_back;
mod marks;
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
use super::worker::{Claiming, WorkerShared};
use crate::database::{Connection, DatabaseError, Param, Purpose};
use crate::service::Claims;
use crate::service::lost_claims::SentClaim;
use give_back::Release;
use marks::Marks;
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
    was_due: marks::Place,
    /// Until it is in the worker's hands, or given back.
    claiming: Claiming,
}

impl Claimed {
    /// When it was due, and its id: the order in which jobs of a priority begin.
    pub(super) fn was_due(&self) -> marks::Place {
        self.was_due
    }
}

/// Where workers ask. Starts with the first of them.
#[derive(Debug)]
pub(super) struct Claimer {
    context: Arc<JobsContext>,
    settler: Arc<Settler>,
    claims: Claims<JobSource, JobClaimer>,
}

impl Claimer {
    pub(super) fn new(context: &Arc<JobsContext>, settler: &Arc<Settler>, runner: Runner<Queue>) -> Self {
        let claims = Claims::new(context.notifier.notifier(), runner);
        Self { context: Arc::clone(context), settler: Arc::clone(settler), claims }
    }

    pub(super) fn handle(&self) -> &DispatcherHandle<JobClaimer> {
        self.claims.handle(|| {
            let context = &self.context;
            super::upkeep::start(context);
            let looker = JobClaimer {
                context: Arc::clone(context),
                settler: Arc::clone(&self.settler),
                connection_slot: tokio::sync::Mutex::default(),
                marks: Mutex::default(),
                unasked: Mutex::default(),
            };
            let options = DispatcherOptions::default().poll_mode(context.options.poll_mode);
            (looker, options.fallback_interval(context.options.everywhere()))
        })
    }
}

pub(super) struct JobClaimer {
    context: Arc<JobsContext>,
    settler: Arc<Settler>,
    /// Opened with the first look, and again when it broke.
    connection_slot: tokio::sync::Mutex<Option<Connection>>,
    marks: Mutex<HashMap<Queue, Marks>>,
    /// Queues that had less than was wanted of them, and of which nobody has asked what comes next:
    /// the jobs they had were to begin first.
    unasked: Mutex<HashSet<Queue>>,
}

/// One worker's part of a look.
struct Search<'s> {
    worker_shared: &'s WorkerShared,
    /// While it lives, a drain of the worker waits.
    claiming: Claiming,
    /// The queues that were rung.
    queues: Vec<Queue>,
    jobs: Vec<Claimed>,
    /// Of which queues it is known that they have no more, and when the next is due.
    bare: HashMap<Queue, Bare>,
}

#[derive(Debug, Default, Clone, Copy)]
struct Bare {
    due: Option<Duration>,
    contended: bool,
}

impl Source for JobClaimer {
    type Key = Queue;
    type Request = Arc<WorkerShared>;
    type Lease = Vec<Claimed>;

    async fn claim(
        &self,
        round: Round<Queue, Arc<WorkerShared>>,
    ) -> Result<RoundResult<Queue, Vec<Claimed>>, RoundFailed> {
        if round
            .keys
            .iter()
            .all(|woken| matches!(woken.cause, Cause::Fallback | Cause::FallbackPolling | Cause::Heartbeat))
        {
            self.context.reporter.emit(&JobEvent::Polled);
        }
        let mut connection_slot = self.connection_slot.lock().await;
        let (mut looked, mut dues) = (RoundResult::default(), HashMap::new());
        for asked in &round.waiting {
            let woken = || round.keys.iter().filter(|woken| asked.keys.contains(&woken.key));
            let queues = woken().map(|woken| Arc::clone(&woken.key)).collect();
            let claiming = Claiming::of(&asked.request);
            let mut search =
                Search { worker_shared: &asked.request, claiming, queues, jobs: Vec::new(), bare: HashMap::new() };
            let unasked = self.take_unasked(woken());
            if let Err(error) = self.search(&mut connection_slot, &mut search, &unasked).await {
                warn!(%error, "could not look for jobs");
                self.give_back(looked.leases.into_iter().flat_map(|(_, jobs)| jobs).chain(search.jobs).collect()).await;
                return Err(RoundFailed);
            }
            for queue in search.queues {
                match search.bare.get(&queue) {
                    None => looked.more.push(queue),
                    Some(bare) => {
                        if let Some(due) = bare.due {
                            let soonest = dues.entry(Arc::clone(&queue)).or_insert(due);
                            *soonest = due.min(*soonest);
                        }
                        if bare.contended {
                            looked.contended.push(queue);
                        }
                    }
                }
            }
            if !search.jobs.is_empty() {
                looked.leases.push((asked.id, search.jobs));
            }
        }
        looked.dues.extend(dues);
        Ok(looked)
    }

    async fn release(&self, leases: Vec<Vec<Claimed>>) {
        self.give_back(leases.into_iter().flatten().collect()).await;
    }
}

impl JobClaimer {
    /// Claims until there is as much as is wanted, or no more. Of the unasked nothing is claimed
    /// unless they have something.
    async fn search(
        &self,
        connection_slot: &mut Option<Connection>,
        search: &mut Search<'_>,
        unasked: &[Queue],
    ) -> Result<(), DatabaseError> {
        let connection = match connection_slot {
            Some(connection) if !connection.is_closed() => connection,
            other => other.insert(self.context.database.connection(Purpose::Dedicated("claim")).await?),
        };
        let want = search.worker_shared.want();
        if want == 0 {
            // Taken by an earlier look of this round: there is more, but no room now.
            let later = Bare { due: None, contended: true };
            search.bare.extend(search.queues.iter().map(|queue| (Arc::clone(queue), later)));
        }
        // While questions rest, the answer would be "later": only a claim tells what was added
        // since.
        let unasked: Vec<Queue> = unasked.iter().filter(|queue| self.rest(queue).is_zero()).cloned().collect();
        if want > 0 && !unasked.is_empty() {
            self.learn(connection, search, &unasked).await?;
            // What is due was added since, or is in somebody else's hands.
            search.bare.retain(|_, bare| !bare.contended);
        }
        let mut open: Vec<Queue> = search.queues.iter().filter(|q| !search.bare.contains_key(*q)).cloned().collect();
        while search.jobs.len() < want && !open.is_empty() {
            let left = want - search.jobs.len();
            let quotas = shares(&open, left, |queue| search.worker_shared.weight(queue));
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
                () if search.jobs.is_empty() => self.learn(connection, search, &short).await?,
                // They may have more, as far as anybody knows: the next look asks, while these jobs
                // run.
                () => self.unasked().extend(short),
            }
        }
        Ok(())
    }

    /// One claim; how many it found of each queue.
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
        let (nonce, lease, want) = (fastrand::i64(..), search.worker_shared.lease.as_secs_f64(), i64::from(size(left)));
        let queues = names.iter().map(ToString::to_string).collect();
        let release = Release { context: Arc::clone(&self.context), claiming: search.claiming.clone(), queues };
        let sent = SentClaim::new(&self.context.service, release, vec![nonce]);
        let options = &self.context.options;
        let (keep, keep_dead) = (options.keep_done.as_secs_f64(), options.keep_dead.map(|keep| keep.as_secs_f64()));
        let params: [Param<'_>; 10] =
            [&names, &mosts, &times, &ids, &want, &&*search.worker_shared.name, &nonce, &lease, &keep, &keep_dead];
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
            self.context.notifier.leased(queue, search.worker_shared.lease);
        }
        Ok(found)
    }

    /// What comes next in queues that have no more for now.
    async fn learn(
        &self,
        connection: &Connection,
        search: &mut Search<'_>,
        queues: &[Queue],
    ) -> Result<(), DatabaseError> {
        let began = Instant::now();
        for queue in queues {
            let wait = self.rest(queue);
            // Not everything could be read: somebody must come back for the rest.
            let due = (!wait.is_zero()).then_some(wait);
            search.bare.insert(Arc::clone(queue), Bare { due, contended: false });
        }
        let ask: Vec<&str> =
            queues.iter().filter(|queue| search.bare[*queue].due.is_none()).map(|queue| &**queue).collect();
        if ask.is_empty() {
            return Ok(());
        }
        let rows = connection.query(&NEXT, &[&ask]).await?;
        let took = began.elapsed();
        for row in rows {
            let queue: Queue = Arc::from(row.get::<_, &str>("queue"));
            let due = row.get::<_, Option<f64>>("due_s").map(|due| Duration::from_secs_f64(due.clamp(0.0, 1e9)));
            let quiet = row.get::<_, bool>("quiet").then(|| self.context.options.quiet());
            self.marks().entry(Arc::clone(&queue)).or_default().learned(began, took);
            let due = [due, quiet].into_iter().flatten().min();
            search.bare.insert(queue, Bare { due, contended: row.get("contended") });
        }
        Ok(())
    }

    /// How long until it may be asked what comes next in the queue.
    fn rest(&self, queue: &Queue) -> Duration {
        let now = Instant::now();
        let wait = |marks: &Marks| marks.look_wait(now).max(marks.learn_wait(now));
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

    /// Those of the keys that are looked at for no other reason than to ask what comes next.
    fn take_unasked<'r>(&self, woken: impl Iterator<Item = &'r WokenKey<Queue>>) -> Vec<Queue> {
        let mut unasked = self.unasked();
        let left =
            woken.filter(|woken| unasked.remove(&woken.key) && matches!(woken.cause, Cause::More | Cause::Started));
        left.map(|woken| Arc::clone(&woken.key)).collect()
    }

    fn unasked(&self) -> std::sync::MutexGuard<'_, HashSet<Queue>> {
        self.unasked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn marks(&self) -> std::sync::MutexGuard<'_, HashMap<Queue, Marks>> {
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
