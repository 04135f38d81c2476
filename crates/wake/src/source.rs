//! Where work comes from, as a dispatcher sees it.
//!
//! Owns the trait that a queue implements to be dispatched: claim, and give back. Promises nothing
//! itself; the methods say what an implementation must.
//!
//! Next: [`crate::dispatcher`].

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::demand::DemandId;
use crate::hub::{Key, WokenKey};

/// A queue that can be claimed from for many demands at once.
pub trait Source: Send + Sync + 'static {
    /// What demands wait for.
    type Key: Key;
    /// What a demand asks for, beyond its keys.
    type Request: Send + Sync + 'static;
    /// What a demand gets.
    type Lease: Send + 'static;

    /// Claims work for the demands of the round, in one statement if it can. The call runs in the
    /// dispatcher's task, so a client that goes away does not cut a claim short. It must end by
    /// itself: after [`round_timeout`](crate::DispatcherOptions::round_timeout) it is dropped, and
    /// the source must give back what it claimed by then.
    fn claim(
        &self,
        round: Round<Self::Key, Self::Request>,
    ) -> impl Future<Output = Result<RoundResult<Self::Key, Self::Lease>, RoundFailed>> + Send;

    /// Gives back leases whose demand has gone, without counting an attempt. Must end by itself.
    fn release(&self, leases: Vec<Self::Lease>) -> impl Future<Output = ()> + Send;

    /// Whether a lease whose demand has gone may serve this request of another demand under the
    /// same key. Default: no.
    fn suits(&self, lease: &Self::Lease, request: &Self::Request) -> bool {
        let _ = (lease, request);
        false
    }
}

/// A source may be shared.
impl<S: Source> Source for Arc<S> {
    type Key = S::Key;
    type Request = S::Request;
    type Lease = S::Lease;

    async fn claim(&self, round: Round<S::Key, S::Request>) -> Result<RoundResult<S::Key, S::Lease>, RoundFailed> {
        S::claim(self, round).await
    }

    async fn release(&self, leases: Vec<S::Lease>) {
        S::release(self, leases).await;
    }

    fn suits(&self, lease: &S::Lease, request: &S::Request) -> bool {
        S::suits(self, lease, request)
    }
}

/// What one claim round is for.
#[derive(Debug)]
pub struct Round<K, R> {
    /// The keys to claim from, and why.
    pub keys: Vec<WokenKey<K>>,
    /// The demands that wait under these keys, the one that has waited longest first.
    pub demands: Vec<WaitingDemand<K, R>>,
}

/// One demand of a round.
#[derive(Debug)]
pub struct WaitingDemand<K, R> {
    /// Names the demand in [`RoundResult::leases`].
    pub id: DemandId,
    /// All keys it waits under; the round may be for some of them only.
    pub keys: Arc<[K]>,
    /// What it asks for.
    pub request: Arc<R>,
    /// Since when it waits.
    pub since: Instant,
}

impl<K, R> Clone for WaitingDemand<K, R> {
    fn clone(&self) -> Self {
        Self { id: self.id, keys: Arc::clone(&self.keys), request: Arc::clone(&self.request), since: self.since }
    }
}

/// What one claim round found. A key of the round that is in neither `more` nor `contended` was
/// shown to have no more.
#[derive(Debug)]
pub struct RoundResult<K, L> {
    /// The leases, each with the demand it is for: at most one for each demand.
    pub leases: Vec<(DemandId, L)>,
    /// Keys that may have more.
    pub more: Vec<K>,
    /// Keys whose work another claim holds at this moment and may give back: "not empty, but not
    /// yours".
    pub contended: Vec<K>,
    /// Keys for which the source checked only the announced places and skipped the full search.
    /// Their due times stay as they are, and if such a key is among `more`, the source knows where
    /// the rest is.
    pub announced_only: Vec<K>,
    /// After what time each key becomes due next, by the clock of the database. A key of the round
    /// listed neither here nor in `announced_only` has no due time.
    pub dues: Vec<(K, Duration)>,
}

impl<K, L> Default for RoundResult<K, L> {
    fn default() -> Self {
        let (more, contended, announced_only) = (Vec::new(), Vec::new(), Vec::new());
        Self { leases: Vec::new(), more, contended, announced_only, dues: Vec::new() }
    }
}

/// The claim round did not succeed. The source has logged why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoundFailed;

impl fmt::Display for RoundFailed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("could not claim work")
    }
}

impl std::error::Error for RoundFailed {}
