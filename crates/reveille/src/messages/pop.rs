//! From a waiting consumer to its messages.
//!
//! Owns the dispatcher of the queues. Promises that one look serves everybody who waits, that
//! nobody polls, that a consumer which goes away keeps nothing, and that a claim whose answer was
//! lost is released at once. Makes neither queues nor partitions: whoever pops what is not there
//! waits for it.
//!
//! Next: `resolve` (names to keys), `round` (keys to claims), `rows` (rows to messages), then
//! [`super::settle`].

mod claim;
mod give_back;
mod marks;
mod memory;
mod request;
mod resolve;
mod round;
mod rows;

use std::sync::Arc;
use std::time::{Duration, Instant};

use reveille_wake::{Answer, DispatcherHandle, DispatcherOptions, Patience, PollMode, Runner};
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
/// How often names are resolved again in a row without a breath.
const AGAIN_MAX: u32 = 16;
/// How many pops may resolve names at once; the others wait in line.
const RESOLVING_MAX: usize = 64;
const BREATH: Duration = Duration::from_millis(20);

impl Messages {
    /// Messages for a consumer, or `None` when none came in time. They are leased to whoever got
    /// them until they are settled or the lease ends. Dropping the future gives up: what was
    /// claimed for it goes to the next one, or back.
    pub async fn pop(&self, pop: Pop) -> Result<Option<Batch>, MessagesError> {
        self.parts.popper.pop(&pop).await
    }

    /// How many partitions have messages for a group that nothing would ever bring to it: always
    /// zero, or it is a defect. Reads everything, so ask seldom.
    pub async fn stranded(&self) -> Result<i64, MessagesError> {
        Ok(stranded(&*self.database().administer().await?).await?)
    }
}

/// The way of all pops of a process. Its dispatcher starts with the first one: a program that only
/// pushes has none.
#[derive(Debug)]
pub(super) struct Popper {
    context: Arc<MessagesContext>,
    resolver: Arc<Resolver>,
    source: Arc<PopSource>,
    claims: Claims<MessageSource, Arc<PopSource>>,
    /// How many may be resolving names.
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
        let mut agains = 0;
        loop {
            let keys = match self.resolver.known(pop) {
                Some(keys) => keys,
                None => self.resolve(pop).await?,
            };
            self.context.notifier.meet(&keys);
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
            agains += 1;
            if agains % AGAIN_MAX == 0 {
                if until.is_none() {
                    return Ok(None);
                }
                tokio::time::sleep(BREATH).await;
            }
        }
    }

    /// In a task of its own: a consumer that goes away in the middle of a statement would leave its
    /// connection unfit for the next one, and enough of them would keep each other from ever being
    /// resolved. It also keeps whoever waits from carrying the room for it all the time.
    async fn resolve(&self, pop: &Pop) -> Result<Arc<[Key]>, MessagesError> {
        let Ok(turn) = Arc::clone(&self.resolving).acquire_owned().await else { return Err(MessagesError::Closed) };
        let (resolver, pop) = (Arc::clone(&self.resolver), pop.clone());
        let resolving = self.context.service.spawn(async move {
            let keys = resolver.keys(&pop).await;
            drop(turn);
            keys
        });
        resolving.await.unwrap_or(Err(MessagesError::Closed))
    }

    /// Who waits, under how many keys of which state, and the pace. A process that never popped
    /// waits for nobody.
    pub(super) fn figures(&self) -> (usize, (usize, usize, usize), PollMode) {
        match self.claims.started() {
            Some(handle) => (handle.demands(), handle.keys(), handle.poll_mode()),
            None => (0, (0, 0, 0), PollMode::Long),
        }
    }

    fn handle(&self) -> &DispatcherHandle<Arc<PopSource>> {
        self.claims.handle(|| {
            let options = &self.context.options;
            let waiting = DispatcherOptions::default().max_demands(options.waiters_max);
            (Arc::clone(&self.source), waiting.poll_mode(options.poll_mode).backoff(options.backoff))
        })
    }
}

fn overloaded(refused: reveille_wake::Refused) -> MessagesError {
    match refused {
        reveille_wake::Refused::Closed => MessagesError::Closed,
        other => MessagesError::Overloaded(other.to_string()),
    }
}
