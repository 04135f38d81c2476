//! A consumer that waits for work: a worker slot, a long poll, a fetch.
//!
//! Owns the client's side of a demand. Promises exactly one answer, and that a client that goes
//! away keeps nothing: a lease that was assigned to it and never taken returns to the dispatcher,
//! which hands it to another demand or gives it back.
//!
//! Next: [`crate::desk`], where demands wait.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use crate::desk::Desk;
use crate::refused::Refused;
use crate::source::Source;

/// Names a demand. The lower of two has waited longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DemandId(pub(crate) u64);

/// How long a demand may wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patience {
    /// For one claim round that begins after the demand arrived.
    Now,
    /// Until this instant.
    Until(Instant),
}

/// What a demand got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer<L> {
    /// Work.
    Lease(L),
    /// There was no work in time.
    Nothing,
    /// Whether there is work is unknown: claim rounds fail.
    Failed,
    /// The key could not be armed.
    Refused(Refused),
    /// The dispatcher is shutting down, or has ended.
    Closed,
}

/// The demand as its client holds it: await it for the answer, drop it to withdraw.
#[must_use = "dropping it withdraws the demand"]
pub struct Ticket<S: Source> {
    desk: Arc<Desk<S>>,
    id: DemandId,
}

impl<S: Source> Ticket<S> {
    pub(crate) const fn new(desk: Arc<Desk<S>>, id: DemandId) -> Self {
        Self { desk, id }
    }

    /// The demand's name.
    pub const fn id(&self) -> DemandId {
        self.id
    }
}

impl<S: Source> Future for Ticket<S> {
    type Output = Answer<S::Lease>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.desk.demands().take_answer(self.id, context.waker())
    }
}

impl<S: Source> Drop for Ticket<S> {
    fn drop(&mut self) {
        let waker = self.desk.demands().withdraw(self.id);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl<S: Source> fmt::Debug for Ticket<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ticket").field("id", &self.id).finish_non_exhaustive()
    }
}
