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
use crate::hub::{Key, RungKey};

/// A queue that can be claimed from for many demands at once.
pub trait Source: Send + Sync + 'static {
    /// What demands wait for.
    type Key: Key;
    /// What a demand asks for, beyond its keys.
    type Ask: Send + Sync + 'static;
    /// What it gets.
    type Lease: Send + 'static;

    /// Claims work for the demands of the round, in one statement if it can. Runs in the
    /// dispatcher's task, so that no client's departure cuts a claim in half. Must end by itself;
    /// it is given up after the dispatcher's look timeout, and what it claimed by then is its own
    /// to give back.
    fn look(
        &self,
        round: Round<Self::Key, Self::Ask>,
    ) -> impl Future<Output = Result<Looked<Self::Key, Self::Lease>, LookFailed>> + Send;

    /// Gives back leases that found no taker, uncharged. Must end by itself.
    fn release(&self, leases: Vec<Self::Lease>) -> impl Future<Output = ()> + Send;

    /// Whether a lease claimed for one demand, which has gone, may serve another one under the same
    /// key. Default: no.
    fn suits(&self, lease: &Self::Lease, ask: &Self::Ask) -> bool {
        let _ = (lease, ask);
        false
    }
}

/// A source may be shared.
impl<S: Source> Source for Arc<S> {
    type Key = S::Key;
    type Ask = S::Ask;
    type Lease = S::Lease;

    async fn look(&self, round: Round<S::Key, S::Ask>) -> Result<Looked<S::Key, S::Lease>, LookFailed> {
        S::look(self, round).await
    }

    async fn release(&self, leases: Vec<S::Lease>) {
        S::release(self, leases).await;
    }

    fn suits(&self, lease: &S::Lease, ask: &S::Ask) -> bool {
        S::suits(self, lease, ask)
    }
}

/// What one claim round is for.
#[derive(Debug)]
pub struct Round<K, A> {
    /// The keys to claim from, and why.
    pub keys: Vec<RungKey<K>>,
    /// The demands that wait under them, the one that has waited longest first.
    pub asked: Vec<Asked<K, A>>,
}

/// One demand of a round.
#[derive(Debug)]
pub struct Asked<K, A> {
    /// Names the demand in [`Looked::leases`].
    pub id: DemandId,
    /// All keys it waits under; the round may be about some of them.
    pub keys: Arc<[K]>,
    /// What it asks for.
    pub ask: Arc<A>,
    /// Since when it waits.
    pub since: Instant,
}

impl<K, A> Clone for Asked<K, A> {
    fn clone(&self) -> Self {
        Self { id: self.id, keys: Arc::clone(&self.keys), ask: Arc::clone(&self.ask), since: self.since }
    }
}

/// What one claim round found. A key that is in none of the lists was shown to have no more.
#[derive(Debug)]
pub struct Looked<K, L> {
    /// The leases, each with the demand it is for; at most one for each.
    pub leases: Vec<(DemandId, L)>,
    /// Keys that may have more.
    pub more: Vec<K>,
    /// Keys with work that somebody else holds at this moment and may give back: "not empty, but
    /// not yours".
    pub contended: Vec<K>,
    /// Keys for which the source checked only the announced places and skipped the full search.
    /// Their due times stay as they are, and if they are among `more`, the source knows where.
    pub followed: Vec<K>,
    /// When keys become due next, by the clock of the database. A key of the round without one has
    /// none.
    pub dues: Vec<(K, Duration)>,
}

impl<K, L> Default for Looked<K, L> {
    fn default() -> Self {
        let (more, contended, followed) = (Vec::new(), Vec::new(), Vec::new());
        Self { leases: Vec::new(), more, contended, followed, dues: Vec::new() }
    }
}

/// The claim round did not succeed. The source has logged why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LookFailed;

impl fmt::Display for LookFailed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("could not claim work")
    }
}

impl std::error::Error for LookFailed {}
