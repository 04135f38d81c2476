//! The end of an activity, and the next one for the slot that did it.
//!
//! Promises that a settlement which has begun is carried through and rung for, whatever becomes of
//! its caller; and that an activity taken for a slot that does not come back is given back,
//! uncounted, after [`HOLD`].
//!
//! Next: [`crate::activities`].

use std::sync::Arc;
use std::time::Duration;

use duroxide::providers::{ProviderError, WorkItem};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::PostgresProvider;
use crate::activities::{Activities, Relayed, Shelf, WaitingDemand};
use crate::token::nonces;
use crate::turns::Turns;
use crate::work_queue::WorkQueue;

/// How long an activity waits for its slot, hidden from everybody else. The slot is on its way: it
/// has only to be scheduled.
const HOLD: Duration = Duration::from_millis(10);

impl PostgresProvider {
    pub(super) async fn settle_activity(&self, token: &str, completion: Option<WorkItem>) -> Result<(), ProviderError> {
        let inner = &*self.inner;
        let Some(asked) = inner.shelf.done(token) else {
            if inner.activities.queue.settle(token, completion.as_ref()).await? {
                inner.turns.wake().await;
            }
            return Ok(());
        };
        let relay = Relay {
            turns: Arc::clone(&inner.turns),
            activities: Arc::clone(&inner.activities),
            shelf: Arc::clone(&inner.shelf),
            end: inner.context.end().clone(),
        };
        let (tell, told) = oneshot::channel();
        // Not by the caller, who may go away while the next activity is being taken: nobody would
        // give it back.
        inner.context.spawn(relay.run(token.to_owned(), completion, asked, tell));
        told.await.unwrap_or_else(|_| Err(ProviderError::retryable("ack_work_item", "the provider is closing")))
    }
}

struct Relay {
    turns: Arc<WorkQueue<Turns>>,
    activities: Arc<WorkQueue<Activities>>,
    shelf: Arc<Shelf>,
    end: CancellationToken,
}

impl Relay {
    async fn run(
        self,
        token: String,
        completion: Option<WorkItem>,
        asked: WaitingDemand,
        tell: oneshot::Sender<Result<(), ProviderError>>,
    ) {
        let next = nonces(1).remove(0);
        let relayed = self.activities.queue.relay(&token, completion.as_ref(), &asked, &next).await;
        let (Relayed { sent, next: task, doubted }, told) = match relayed {
            Ok(relayed) => (relayed, Ok(())),
            Err(error) => (Relayed { doubted: error.is_retryable(), ..Relayed::default() }, Err(error)),
        };
        let is_taken = task.is_some();
        if let Some(task) = task {
            self.activities.leased(asked.1.lock);
            self.shelf.put(asked, task);
        }
        if sent {
            self.turns.wake().await;
        }
        let is_awaited = tell.send(told).is_ok();
        if is_taken && is_awaited {
            let _ = tokio::time::timeout(HOLD, self.end.cancelled()).await;
        }
        if doubted || self.shelf.take_back(&next).is_some() {
            self.activities.queue.release(vec![next]).await;
            self.activities.wake().await;
        }
    }
}
