//! The way from a queue to the slots that fetch from it.
//!
//! Owns one queue's dispatcher and bell. Promises that a fetch which may wait is a demand: one look serves all of them,
//! nobody polls, and whoever goes away keeps nothing. Without waiting, a fetch looks once, itself. The dispatcher starts
//! with the first fetch: a program that only sends has none.
//!
//! Next: [`crate::provider`].

mod look;

use std::fmt::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use duroxide::providers::ProviderError;
use reveille::database::{Database, Registration};
use reveille_wake::{Answer, Cause, Dispatcher, DispatcherHandle, Hub, LongPollConfig, Patience, Runner};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::bell::Bell;
use crate::error::provider_error;
use crate::queue::Queue;
use look::Looker;

/// A queue and how it is waited for.
#[derive(Debug)]
pub(crate) struct Lane<Q: Queue> {
    pub(crate) queue: Arc<Q>,
    /// `None` when fetches do not wait.
    waiting: Option<Waiting<Q>>,
}

struct Waiting<Q: Queue> {
    database: Database,
    config: LongPollConfig,
    bell: Arc<Bell<Q::Key>>,
    hub: Hub<Q::Key>,
    runner: Mutex<Option<Runner<Q::Key>>>,
    door: OnceLock<Door<Q>>,
    tasks: Tasks,
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
    /// Some lane has a dispatcher: this process lives on, and its hints can leave when they like.
    serving: Arc<AtomicBool>,
}

impl<Q: Queue> Lane<Q> {
    /// `store` is the database with the provider's schema, which also names it in hints.
    pub(crate) fn new(queue: Q, store: &Database, config: LongPollConfig, tasks: Tasks) -> Self {
        let waiting = config.enabled.then(|| {
            let (hub, runner) = Hub::new(config.hub_options());
            let name = format!("duroxide-{}-{}", Q::NAME, plain(store.schema().as_str()));
            let bell = Bell::new(name, Q::survey().text(store.schema()), hub.clone(), store.herald());
            Waiting {
                database: store.clone(),
                config,
                bell: Arc::new(bell),
                hub,
                runner: Mutex::new(Some(runner)),
                door: OnceLock::new(),
                tasks,
            }
        });
        Self { queue: Arc::new(queue), waiting }
    }

    /// Take one, waiting for it up to `wait`.
    pub(crate) async fn take(
        &self,
        operation: &str,
        key: Q::Key,
        ask: Q::Ask,
        wait: Duration,
    ) -> Result<Option<Q::Lease>, ProviderError> {
        let Some(waiting) = &self.waiting else {
            let claimed = self.queue.claim(&[(&key, 1)], &ask).await;
            let claimed = claimed.map_err(|failed| provider_error(operation, &failed.error))?;
            return Ok(claimed.into_iter().flat_map(|claimed| claimed.leases).next());
        };
        waiting.bell.meet(&key);
        let patience = match Instant::now().checked_add(wait) {
            Some(until) if !wait.is_zero() => Patience::Until(until),
            _ => Patience::Now,
        };
        let failed = |why: String| Err(ProviderError::retryable(operation, why));
        match waiting.door(&self.queue).handle.ask([key], ask, patience) {
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
        if let Some(waiting) = &self.waiting {
            waiting.bell.leased(lock);
        }
    }

    /// There may be work now.
    pub(crate) async fn ring(&self) {
        if let Some(waiting) = &self.waiting {
            waiting.bell.ring();
            waiting.flush_if_alone().await;
        }
    }

    /// How often somebody said that there may be work.
    pub(crate) fn rings(&self) -> u64 {
        self.waiting.as_ref().map_or(0, |waiting| waiting.bell.rings())
    }

    /// There may be work now, for this node alone.
    pub(crate) fn ring_here(&self, cause: Cause) {
        if let Some(waiting) = &self.waiting {
            waiting.bell.ring_here(cause);
        }
    }

    /// There will be work after `delay`.
    pub(crate) async fn ring_after(&self, delay: Duration) {
        if let Some(waiting) = &self.waiting {
            waiting.bell.ring_after(delay);
            waiting.flush_if_alone().await;
        }
    }
}

impl<Q: Queue> Waiting<Q> {
    fn door(&self, queue: &Arc<Q>) -> &Door<Q> {
        self.door.get_or_init(|| {
            let looker = Looker { queue: Arc::clone(queue), bell: Arc::clone(&self.bell) };
            let (dispatcher, handle) = Dispatcher::new(&self.hub, looker, self.config.dispatcher_options());
            let registration = self.database.register(Arc::clone(&self.bell) as Arc<_>);
            if let Some(runner) = self.runner.lock().unwrap_or_else(PoisonError::into_inner).take() {
                self.tasks.tracker.spawn(runner.run(self.tasks.end.clone().cancelled_owned()));
            }
            self.tasks.tracker.spawn(dispatcher.run(self.tasks.end.clone().cancelled_owned()));
            self.tasks.serving.store(true, Ordering::Relaxed);
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
        f.debug_struct("Waiting")
            .field("bell", &self.bell)
            .field("open", &self.door.get().is_some())
            .finish_non_exhaustive()
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
