//! The way from a queue to the slots that fetch from it.
//!
//! Owns one queue's dispatcher and bell. Promises that a fetch which may wait is a demand: one look serves all of them,
//! nobody polls, and whoever goes away keeps nothing. Without waiting, a fetch looks once, itself; what such a program does is
//! announced all the same, because others may wait for it. The dispatcher starts with the first fetch: a program that only
//! sends has none.
//!
//! Next: [`crate::provider`].

mod look;

use std::fmt::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use duroxide::providers::ProviderError;
use reveille::database::{Database, Registration};
use reveille_wake::{Answer, Cause, Dispatcher, DispatcherHandle, Hub, Patience, Runner};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::bell::Bell;
use crate::error::provider_error;
use crate::long_poll::LongPollConfig;
use crate::queue::{Queue, QueueAsk};
use look::Looker;

/// A queue and how it is waited for.
#[derive(Debug)]
pub(crate) struct Lane<Q: Queue> {
    pub(crate) queue: Arc<Q>,
    bell: Arc<Bell<Q::Key>>,
    tasks: Tasks,
    /// `None` when fetches do not wait.
    waiting: Option<Waiting<Q>>,
}

struct Waiting<Q: Queue> {
    database: Database,
    config: LongPollConfig,
    hub: Hub<Q::Key>,
    runner: Mutex<Option<Runner<Q::Key>>>,
    door: OnceLock<Door<Q>>,
}

struct Door<Q: Queue> {
    handle: DispatcherHandle<Looker<Q>>,
    _registration: Registration,
}

/// Where the lane's tasks live, and what ends them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tasks {
    pub(crate) tracker: TaskTracker,
    pub(crate) end: CancellationToken,
    /// Somebody fetches: this process lives on, and its hints can leave when they like.
    serving: Arc<AtomicBool>,
}

impl<Q: Queue> Lane<Q> {
    /// `store` is the database with the provider's schema, which also names it in hints.
    pub(crate) fn new(queue: Q, store: &Database, config: LongPollConfig, tasks: Tasks) -> Self {
        let (hub, runner) = Hub::new(config.hub_options());
        let name = format!("duroxide-{}-{}", Q::NAME, plain(store.schema().as_str()));
        let bell = Bell::new(name, Q::survey().text(store.schema()), hub.clone(), store.herald());
        let (database, runner) = (store.clone(), Mutex::new(Some(runner)));
        let waiting = config.enabled.then(|| Waiting { database, config, hub, runner, door: OnceLock::new() });
        Self { queue: Arc::new(queue), bell: Arc::new(bell), tasks, waiting }
    }

    /// Take one, waiting for it up to `wait`.
    pub(crate) async fn take(
        &self,
        operation: &str,
        key: Q::Key,
        ask: Q::Ask,
        wait: Duration,
    ) -> Result<Option<Q::Lease>, ProviderError> {
        self.tasks.serving.store(true, Ordering::Relaxed);
        let Some(waiting) = &self.waiting else {
            let claimed = self.queue.claim(&[(&key, 1)], &ask).await;
            let claimed = claimed.map_err(|failed| provider_error(operation, &failed.error))?;
            let lease = claimed.into_iter().flat_map(|claimed| claimed.leases).next();
            if lease.is_some() {
                self.bell.leased(ask.lock());
            }
            return Ok(lease);
        };
        self.bell.meet(&key);
        let patience = match Instant::now().checked_add(wait) {
            Some(until) if !wait.is_zero() => Patience::Until(until),
            _ => Patience::Now,
        };
        let failed = |why: String| Err(ProviderError::retryable(operation, why));
        match self.door(waiting).handle.ask([key], ask, patience) {
            Err(refused) => failed(refused.to_string()),
            Ok(ticket) => match ticket.await {
                Answer::Lease(lease) => Ok(Some(lease)),
                Answer::Nothing => Ok(None),
                Answer::Failed => failed("could not look for work".to_owned()),
                Answer::Refused(refused) => failed(refused.to_string()),
                Answer::Closed => failed("the provider is closing".to_owned()),
            },
        }
    }

    /// Whether fetches wait here.
    pub(crate) fn waits(&self) -> bool {
        self.waiting.is_some()
    }

    /// Something was taken outside a look, for `lock`.
    pub(crate) fn leased(&self, lock: Duration) {
        self.bell.leased(lock);
    }

    /// There may be work now.
    pub(crate) async fn ring(&self) {
        self.bell.ring();
        self.flush_if_alone().await;
    }

    /// How often somebody said that there may be work.
    pub(crate) fn rings(&self) -> u64 {
        self.bell.rings()
    }

    /// There may be work now, for this node alone.
    pub(crate) fn ring_here(&self, cause: Cause) {
        self.bell.ring_here(cause);
    }

    /// There will be work after `delay`.
    pub(crate) async fn ring_after(&self, delay: Duration) {
        self.bell.ring_after(delay);
        self.flush_if_alone().await;
    }

    fn door<'w>(&self, waiting: &'w Waiting<Q>) -> &'w Door<Q> {
        waiting.door.get_or_init(|| {
            let looker = Looker { queue: Arc::clone(&self.queue), bell: Arc::clone(&self.bell) };
            let (dispatcher, handle) = Dispatcher::new(&waiting.hub, looker, waiting.config.dispatcher_options());
            let registration = waiting.database.register(Arc::clone(&self.bell) as Arc<_>);
            if let Some(runner) = waiting.runner.lock().unwrap_or_else(PoisonError::into_inner).take() {
                self.tasks.tracker.spawn(runner.run(self.tasks.end.clone().cancelled_owned()));
            }
            self.tasks.tracker.spawn(dispatcher.run(self.tasks.end.clone().cancelled_owned()));
            Door { handle, _registration: registration }
        })
    }

    /// A program that only sends may exit right after: its hints leave first.
    async fn flush_if_alone(&self) {
        if !self.tasks.serving.load(Ordering::Relaxed) {
            self.bell.flush().await;
        }
    }
}

impl<Q: Queue> std::fmt::Debug for Waiting<Q> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Waiting").field("open", &self.door.get().is_some()).finish_non_exhaustive()
    }
}

/// A schema's name in the letters that hints allow; different names stay different.
fn plain(name: &str) -> String {
    let mut text = String::with_capacity(name.len());
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || byte == b'_' {
            text.push(char::from(byte));
        } else {
            let _ = write!(text, "-{byte:02x}");
        }
    }
    text
}
