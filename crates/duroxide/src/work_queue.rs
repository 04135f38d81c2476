//! One queue of a provider, and how its fetches wait for work.
//!
//! `WorkQueue` joins the statements of a queue to the wake engine; it exists so that turns and
//! activities wait, wake and are handed out in one way. Owns the queue's dispatcher and notifier.
//! Promises that a fetch which may wait is a demand: one claim round serves all demands (or each
//! has its own, if the policy is to broadcast), none of them polls, and a fetch that goes away
//! keeps nothing. With long polling off, a fetch makes one claim of its own; what such a program
//! sends is announced all the same, because other programs may wait for it. The dispatcher starts
//! with the first fetch: a program that only sends has none.
//!
//! Next: [`crate::provider`].

mod round;

use std::fmt::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};

use duroxide::providers::ProviderError;
use reveille::service::WorkSource;
use reveille::service::{Claims, Context, Notifier};
use reveille_wake::{Answer, Cause, DispatcherHandle, Hub, Patience};

use crate::error::provider_error;
use crate::long_poll::LongPollConfig;
use crate::queue::{Queue, QueueKey, QueueRequest};
use crate::ready::{EveryKey, QueueSource};
use round::Claimer;

/// A queue and how it is waited for.
#[derive(Debug)]
pub(crate) struct WorkQueue<Q: Queue> {
    pub(crate) queue: Arc<Q>,
    context: Arc<Context>,
    notifier: Arc<Notifier<QueueSource<Q::Key>>>,
    config: LongPollConfig,
    /// `None` when fetches do not wait.
    claims: Option<Claims<QueueSource<Q::Key>, Claimer<Q>>>,
}

impl<Q: Queue> WorkQueue<Q> {
    /// The context's database has the provider's schema, which also names it in hints.
    pub(crate) fn new(queue: Q, context: &Arc<Context>, config: LongPollConfig) -> Self {
        let (hub, runner) = Hub::new(config.hub_options());
        let schema = context.database().schema();
        let name = format!("duroxide-{}-{}", Q::NAME, plain(schema.as_str()));
        let source = Arc::new(QueueSource::new(name, Q::survey().in_schema(schema), hub));
        let notifier = Arc::new(Notifier::new(context, &source));
        let claims = config.enabled.then(|| Claims::new(&notifier, runner));
        Self { queue: Arc::new(queue), context: Arc::clone(context), notifier, config, claims }
    }

    /// Take one, waiting for it up to `wait`.
    pub(crate) async fn take(
        &self,
        operation: &str,
        key: Q::Key,
        request: Q::Request,
        wait: Duration,
    ) -> Result<Option<Q::Lease>, ProviderError> {
        self.context.serve();
        let Some(claims) = &self.claims else {
            let claimed = self.queue.claim(&[(&key, 1)], &request).await;
            let claimed = claimed.map_err(|failed| provider_error(operation, &failed.error))?;
            let lease = claimed.into_iter().flat_map(|claimed| claimed.leases).next();
            if lease.is_some() {
                self.leased(request.lock());
            }
            return Ok(lease);
        };
        self.notifier.source().meet(&key);
        let patience = match Instant::now().checked_add(wait) {
            Some(until) if !wait.is_zero() => Patience::Until(until),
            _ => Patience::Now,
        };
        let failed = |why: String| Err(ProviderError::retryable(operation, why));
        match self.handle(claims).request([key], request, patience) {
            Err(refused) => failed(refused.to_string()),
            Ok(ticket) => match ticket.await {
                Answer::Lease(lease) => Ok(Some(lease)),
                Answer::Nothing => Ok(None),
                Answer::Failed => failed("could not claim work".to_owned()),
                Answer::Refused(refused) => failed(refused.to_string()),
                Answer::Closed => failed("the provider is closing".to_owned()),
            },
        }
    }

    /// Whether fetches wait here.
    pub(crate) fn waits(&self) -> bool {
        self.claims.is_some()
    }

    /// Something was taken for `lock`: if its holder dies, others must claim when the lock ends.
    pub(crate) fn leased(&self, lock: Duration) {
        self.notifier.leased(&EveryKey, lock);
    }

    /// There may be work now.
    pub(crate) async fn wake(&self) {
        announce(&self.notifier);
        self.notifier.flush_if_alone().await;
    }

    /// How often there may have been work.
    pub(crate) fn wakes(&self) -> u64 {
        self.notifier.source().wakes()
    }

    /// There may be work now, for this node alone: a turn ended, and the senders announced to the
    /// others what arrived meanwhile.
    pub(crate) fn wake_here(&self, cause: Cause) {
        self.notifier.source().hub().wake_all(cause);
    }

    /// There will be work after `delay`.
    pub(crate) async fn wake_after(&self, delay: Duration) {
        self.notifier.announce_after(&EveryKey, delay);
        self.notifier.flush_if_alone().await;
    }

    fn handle<'c>(&self, claims: &'c Claims<QueueSource<Q::Key>, Claimer<Q>>) -> &'c DispatcherHandle<Claimer<Q>> {
        claims.handle(|| {
            let (queue, notifier) = (Arc::clone(&self.queue), Arc::clone(&self.notifier));
            (Claimer { queue, notifier }, self.config.dispatcher_options())
        })
    }
}

/// There may be work now, here and elsewhere. Counted also while no fetch of this process waits: a
/// turn that ends checks whether anything arrived meanwhile.
fn announce<K: QueueKey>(notifier: &Notifier<QueueSource<K>>) {
    notifier.source().count();
    notifier.announce(&EveryKey, Cause::Pushed);
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
