//! Settles an activity, and has the next one ready when the slot asks for it.
//!
//! A slot that settles an activity fetches the next at once. A relay therefore takes the next
//! activity in the statement that settles, and puts it on the shelf for that slot. It exists
//! because this saves a claim and a turn of the dispatcher for every activity. Promises that a
//! settlement which has begun is completed and followed by its wake-ups, also when its caller goes
//! away; and that an activity taken for a slot that does not come back is given back, uncounted,
//! after [`HOLD`].
//!
//! Next: [`crate::activities`].

use std::sync::Arc;
use std::time::Duration;

use duroxide::providers::{ProviderError, WorkItem};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::PostgresProvider;
use crate::activities::{Activities, Fetch, Relayed, Shelf};
use crate::token::nonces;
use crate::turns::Turns;
use crate::work_queue::WorkQueue;

/// How long an activity waits for its slot, hidden from all others. The slot is about to ask: it
/// has only to be scheduled.
const HOLD: Duration = Duration::from_millis(10);

impl PostgresProvider {
    pub(super) async fn settle_activity(&self, token: &str, completion: Option<WorkItem>) -> Result<(), ProviderError> {
        let inner = &*self.inner;
        let Some(fetch) = inner.shelf.done(token) else {
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
        let (reply, replied) = oneshot::channel();
        // In a task of its own: if the caller went away while the next activity is being taken,
        // nothing would give that activity back.
        inner.context.spawn(relay.run(token.to_owned(), completion, fetch, reply));
        replied.await.unwrap_or_else(|_| Err(ProviderError::retryable("ack_work_item", "the provider is closing")))
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
        fetch: Fetch,
        reply: oneshot::Sender<Result<(), ProviderError>>,
    ) {
        let next = nonces(1).remove(0);
        let relayed = self.activities.queue.relay(&token, completion.as_ref(), &fetch, &next).await;
        let (Relayed { sent, next: task, doubted }, settled) = match relayed {
            Ok(relayed) => (relayed, Ok(())),
            Err(error) => (Relayed { doubted: error.is_retryable(), ..Relayed::default() }, Err(error)),
        };
        let is_taken = task.is_some();
        if let Some(task) = task {
            self.activities.leased(fetch.1.lock);
            self.shelf.put(fetch, task);
        }
        if sent {
            self.turns.wake().await;
        }
        let is_awaited = reply.send(settled).is_ok();
        if is_taken && is_awaited {
            let _ = tokio::time::timeout(HOLD, self.end.cancelled()).await;
        }
        if doubted || self.shelf.take_back(&next).is_some() {
            self.activities.queue.release(vec![next]).await;
            self.activities.wake().await;
        }
    }
}
