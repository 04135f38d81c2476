//! From a worker's free slots to the jobs it holds.
//!
//! Owns the dispatcher of jobs and its one connection. Promises that all free slots of a worker
//! cost one statement for each pass over its queues, that no worker polls while hints arrive (only
//! quiet queues, whose jobs send none, are polled), and that a lost claim is given back without
//! counting an attempt. Counts an attempt when it is claimed, so that a job which kills its worker
//! cannot run for ever.
//!
//! Next: `search` (one worker's part of a round), then [`super::worker`].

mod give_back;
mod low_water;
mod marks;
mod next_due;
mod rows;
mod search;
mod shares;

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use reveille_wake::{DemandId, DispatcherHandle, DispatcherOptions, Round, RoundFailed, RoundResult, Runner, Source};

use super::context::JobsContext;
use super::event::{About, JobEvent};
use super::id::JobToken;
use super::ready::{JobSource, Queue};
use super::settle::{Ending, Settlement, Settler};
use super::worker::{Claiming, WorkerState};
use crate::database::Connection;
use crate::database::outage::warn_unless_away;
use crate::service::Claims;
use marks::Marks;
use search::{Exhausted, Search};

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
    was_due: low_water::DueAndId,
    /// Until it is in the worker's hands, or given back.
    claiming: Claiming,
}

impl Claimed {
    /// When it was due, and its id: the order in which jobs of a priority begin.
    pub(super) fn was_due(&self) -> low_water::DueAndId {
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
                marks: Marks::default(),
                deferred: Mutex::default(),
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
    marks: Marks,
    /// Queues whose next due time the last round did not read, so that the jobs it found start
    /// sooner. The next round reads it first.
    deferred: Mutex<HashSet<Queue>>,
}

impl Source for ClaimSource {
    type Key = Queue;
    type Request = Arc<WorkerState>;
    type Lease = Vec<Claimed>;

    async fn claim(
        &self,
        round: Round<Queue, Arc<WorkerState>>,
    ) -> Result<RoundResult<Queue, Vec<Claimed>>, RoundFailed> {
        if !round.keys.iter().any(|woken| woken.cause.is_announced()) {
            self.context.reporter.emit(&JobEvent::Polled);
        }
        let mut connection = self.connection.lock().await;
        let mut findings = Findings::default();
        for demand in &round.demands {
            let woken = || round.keys.iter().filter(|woken| demand.keys.contains(&woken.key));
            let queues = woken().map(|woken| Arc::clone(&woken.key)).collect();
            let mut search = Search::new(&demand.request, queues, self.take_deferred(woken()));
            if let Err(error) = self.search(&mut connection, &mut search).await {
                warn_unless_away!(&error, %error, "could not claim jobs");
                self.give_back(findings.into_jobs().chain(search.jobs).collect()).await;
                return Err(RoundFailed);
            }
            findings.add(demand.id, search);
        }
        Ok(findings.into_result())
    }

    async fn release(&self, leases: Vec<Vec<Claimed>>) {
        self.give_back(leases.into_iter().flatten().collect()).await;
    }
}

/// What the searches of a round found.
#[derive(Default)]
struct Findings {
    result: RoundResult<Queue, Vec<Claimed>>,
    /// The soonest due time of each queue.
    dues: HashMap<Queue, Duration>,
}

impl Findings {
    fn add(&mut self, demand: DemandId, search: Search<'_>) {
        for queue in search.queues {
            let exhausted = search.exhausted.get(&queue).copied();
            if let Some(next) = exhausted.and_then(Exhausted::next) {
                let soonest = self.dues.entry(Arc::clone(&queue)).or_insert(next);
                *soonest = next.min(*soonest);
            }
            match exhausted {
                None => self.result.more.push(queue),
                Some(Exhausted::NoneDue { .. }) => {}
                Some(Exhausted::Contended { .. } | Exhausted::NoRoom) => self.result.contended.push(queue),
            }
        }
        if !search.jobs.is_empty() {
            self.result.leases.push((demand, search.jobs));
        }
    }

    fn into_jobs(self) -> impl Iterator<Item = Claimed> {
        self.result.leases.into_iter().flat_map(|(_, jobs)| jobs)
    }

    fn into_result(self) -> RoundResult<Queue, Vec<Claimed>> {
        RoundResult { dues: self.dues.into_iter().collect(), ..self.result }
    }
}

impl ClaimSource {
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
}
