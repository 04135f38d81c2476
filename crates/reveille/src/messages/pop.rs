//! From a waiting consumer to its messages.
//!
//! Owns the dispatcher of the queues. Promises that one claim round serves all waiting pops; that a
//! waiting pop runs no query; that a consumer which goes away keeps no lease; and that a claim
//! whose answer was lost is released at once. A pop of a queue that does not exist waits until it
//! does. It creates nothing but its group, with one exception: a claim round moves the pushes of
//! callers' transactions out of the outbox, and so creates the queues and partitions these name.
//!
//! Next: `resolve` (names to keys), `round` (keys to claims), `rows` (rows to messages), then
//! [`super::settle`].

mod claim;
mod give_back;
mod low_water;
mod memory;
mod request;
mod resolve;
mod round;
mod rows;

use std::sync::Arc;
use std::time::{Duration, Instant};

use reveille_wake::{Answer, DispatcherHandle, DispatcherOptions, KeyCounts, Patience, PollMode, Runner};
use tokio::sync::Semaphore;

use super::Messages;
use super::context::MessagesContext;
use super::error::MessagesError;
use super::group::Groups;
use super::key::Key;
use super::message::Batch;
use super::ready::MessageSource;
use crate::doctor::stranded;
use crate::service::Claims;
use request::Demand;
pub use request::Pop;
use resolve::Resolver;
use round::PopSource;

/// The connection on which all pops of a process are served.
pub(super) const CONNECTION_NAMES: [&str; 1] = ["pop"];
/// How often one pop resolves its names again before it pauses.
const RESOLVED_IN_A_ROW_MAX: u32 = 16;
const RESOLVE_PAUSE: Duration = Duration::from_millis(20);
/// How many pops may resolve names at once; the others wait in line.
const RESOLVING_MAX: usize = 64;

impl Messages {
    /// Messages for a consumer, or `None` if none came in time. They are leased to the consumer
    /// until they are settled or the lease ends. Dropping the future gives up: messages that were
    /// claimed for it go to the next waiting pop, or back.
    pub async fn pop(&self, pop: Pop) -> Result<Option<Batch>, MessagesError> {
        self.parts.popper.pop(&pop).await
    }

    /// How many partitions have undelivered messages that no consumer will be woken for, counted
    /// for each group. Always zero; anything else is a bug in Reveille. Reads every cursor, so call
    /// it seldom.
    pub async fn stranded(&self) -> Result<i64, MessagesError> {
        Ok(stranded(&*self.database().administer().await?).await?)
    }
}

/// Serves all pops of a process. The first pop starts the dispatcher: a program that only pushes
/// has none.
#[derive(Debug)]
pub(super) struct Popper {
    context: Arc<MessagesContext>,
    resolver: Arc<Resolver>,
    source: Arc<PopSource>,
    claims: Claims<MessageSource, Arc<PopSource>>,
    /// A permit for each pop that may resolve names.
    resolving: Arc<Semaphore>,
}

impl Popper {
    pub(super) fn new(context: &Arc<MessagesContext>, runner: Runner<Key>) -> Self {
        let resolving = Arc::new(Semaphore::new(RESOLVING_MAX));
        let groups = Arc::new(Groups::new(context));
        let resolver = Arc::new(Resolver::new(context, &groups));
        let source = Arc::new(PopSource::new(Arc::clone(context), groups));
        let claims = Claims::new(context.notifier.notifier(), runner);
        Self { context: Arc::clone(context), resolver, source, claims, resolving }
    }

    async fn pop(&self, pop: &Pop) -> Result<Option<Batch>, MessagesError> {
        let until = Instant::now().checked_add(pop.wait).filter(|_| !pop.wait.is_zero());
        let handle = self.handle();
        let mut retries = Retries::default();
        loop {
            let keys = match self.resolver.cached_keys(pop) {
                Some(keys) => keys,
                None => self.resolve(pop).await?,
            };
            self.context.notifier.add_waited(&keys);
            let demand = Demand::of(pop, Arc::clone(&keys));
            let ticket = handle.request(keys, demand, until.map_or(Patience::Now, Patience::Until));
            match ticket.map_err(overloaded)?.await {
                Answer::Lease(claim) => match claim.into_batch()? {
                    Some(batch) => return Ok(Some(batch)),
                    None => self.resolver.forget(pop),
                },
                Answer::Nothing => return Ok(None),
                Answer::Failed => return Err(self.source.last_failure()),
                Answer::Refused(refused) => return Err(overloaded(refused)),
                Answer::Closed => return Err(MessagesError::Closed),
            }
            if let Some(pause) = retries.pause() {
                if until.is_none() {
                    return Ok(None);
                }
                tokio::time::sleep(pause).await;
            }
        }
    }

    /// In a task of its own. A consumer that goes away in the middle of a statement would leave its
    /// connection unfit for the next one; if enough consumers did, no name would ever be resolved.
    /// The task also keeps the future of a waiting pop small.
    async fn resolve(&self, pop: &Pop) -> Result<Arc<[Key]>, MessagesError> {
        let Ok(permit) = Arc::clone(&self.resolving).acquire_owned().await else { return Err(MessagesError::Closed) };
        let (resolver, pop) = (Arc::clone(&self.resolver), pop.clone());
        let resolving = self.context.service.spawn(async move {
            let keys = resolver.keys(&pop).await;
            drop(permit);
            keys
        });
        resolving.await.unwrap_or(Err(MessagesError::Closed))
    }

    /// In a process that never popped nothing waits.
    pub(super) fn figures(&self) -> PopFigures {
        match self.claims.started() {
            Some(handle) => {
                PopFigures { waiting: handle.demands(), keys: handle.keys(), poll_mode: handle.poll_mode() }
            }
            None => PopFigures { waiting: 0, keys: KeyCounts::default(), poll_mode: PollMode::Long },
        }
    }

    fn handle(&self) -> &DispatcherHandle<Arc<PopSource>> {
        self.claims.handle(|| {
            let options = &self.context.options;
            let dispatcher = DispatcherOptions::default().max_demands(options.waiters_max);
            (Arc::clone(&self.source), dispatcher.poll_mode(options.poll_mode).backoff(options.backoff))
        })
    }
}

/// The pops of a process that wait.
#[derive(Debug, Clone, Copy)]
pub(super) struct PopFigures {
    pub(super) waiting: usize,
    pub(super) keys: KeyCounts,
    pub(super) poll_mode: PollMode,
}

/// How often a pop has resolved its names again.
#[derive(Debug, Default)]
struct Retries(u32);

impl Retries {
    /// Counts one more. After so many in a row it answers with the pause that is due: names that
    /// change all the time must not keep a connection busy.
    fn pause(&mut self) -> Option<Duration> {
        self.0 += 1;
        self.0.is_multiple_of(RESOLVED_IN_A_ROW_MAX).then_some(RESOLVE_PAUSE)
    }
}

fn overloaded(refused: reveille_wake::Refused) -> MessagesError {
    match refused {
        reveille_wake::Refused::Closed => MessagesError::Closed,
        other => MessagesError::Overloaded(other.to_string()),
    }
}
