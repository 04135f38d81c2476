//! What the two queues of a provider have in common.
//!
//! Each claim has a key, which decides what may be taken, and a request, which decides for how
//! long. Everything that waits, wakes and hands out is written once, for both: see
//! [`crate::work_queue`].
//!
//! Next: [`crate::turns`], [`crate::activities`].

use std::fmt::Debug;
use std::future::Future;
use std::hash::Hash;
use std::time::Duration;

use reveille::database::DatabaseError;
use reveille::service::{Column, Survey};
use reveille_wake::Key;

/// A queue of turns or of activities.
pub(crate) trait Queue: Debug + Send + Sync + 'static {
    /// What may be taken.
    type Key: QueueKey;
    /// How it is taken.
    type Request: QueueRequest;
    /// What was taken.
    type Lease: Debug + Send + 'static;
    /// Its name in hints.
    const NAME: &'static str;

    /// The query with which the heartbeat finds what is ready or due.
    fn survey() -> Survey;

    /// Whether one claim can serve both keys.
    fn alike(one: &Self::Key, other: &Self::Key) -> bool {
        one == other
    }

    /// Take up to so many under each of these keys, which are alike; one result for each.
    fn claim(
        &self,
        wanted: &[(&Self::Key, usize)],
        request: &Self::Request,
    ) -> impl Future<Output = Result<Vec<Claimed<Self::Lease>>, ClaimFailed<Self::Lease>>> + Send;

    /// Give back lost claims, as if they had never been taken.
    fn give_back(&self, leases: Vec<Self::Lease>) -> impl Future<Output = ()> + Send;
}

/// A key that the survey can read.
pub(crate) trait QueueKey: Key + Ord {
    /// The keys as the survey's parameters.
    fn columns(keys: &[Self]) -> Vec<Column>;
}

/// How something is taken; equal requests under one key are served together.
pub(crate) trait QueueRequest: Clone + Eq + Hash + Debug + Send + Sync + 'static {
    /// How long the lock lasts.
    fn lock(&self) -> Duration;
}

/// What a claim found.
#[derive(Debug)]
pub(crate) struct Claimed<L> {
    pub(crate) leases: Vec<L>,
    /// As much was picked as was wanted: there may be more.
    pub(crate) filled: bool,
    /// Something was left because another transaction has it locked at this moment. That one may
    /// still roll back, and then no wake-up is sent.
    pub(crate) contended: bool,
    /// When there may be something to take next.
    pub(crate) due: Option<Duration>,
}

impl<L> Claimed<L> {
    /// The claim of a statement that returned no row.
    pub(crate) fn nothing() -> Self {
        Self { leases: Vec::new(), filled: false, contended: false, due: None }
    }
}

/// A claim failed, perhaps after some of it succeeded; that must be given back.
#[derive(Debug)]
pub(crate) struct ClaimFailed<L> {
    pub(crate) taken: Vec<L>,
    pub(crate) error: DatabaseError,
}

impl<L> ClaimFailed<L> {
    pub(crate) fn after(claimed: Vec<Claimed<L>>, error: DatabaseError) -> Self {
        Self { taken: claimed.into_iter().flat_map(|claimed| claimed.leases).collect(), error }
    }
}

/// The next due time as the database computed it; what is due at this moment is due in a
/// millisecond.
pub(crate) fn due(seconds: Option<f64>) -> Option<Duration> {
    const SOON: Duration = Duration::from_millis(1);
    seconds.map(|seconds| Duration::try_from_secs_f64(seconds).unwrap_or(SOON).max(SOON))
}
