//! What the two queues of a provider have in common.
//!
//! A queue is claimed from under a key, which decides what may be taken, for an ask, which decides for how long. Everything
//! that waits, wakes and hands out is written once, for both: see [`crate::lane`].
//!
//! Next: [`crate::turns`], [`crate::activities`].

use std::fmt::Debug;
use std::future::Future;
use std::hash::Hash;
use std::time::Duration;

use reveille::database::{DatabaseError, Statement};
use reveille_wake::Key;

/// A queue of turns or of activities.
pub(crate) trait Queue: Debug + Send + Sync + 'static {
    /// What may be taken.
    type Key: QueueKey;
    /// How it is taken.
    type Ask: QueueAsk;
    /// What was taken.
    type Lease: Debug + Send + 'static;
    /// Its name in hints.
    const NAME: &'static str;

    /// What the heartbeat asks.
    fn survey() -> &'static Statement;

    /// Take up to `want`.
    fn claim(
        &self,
        key: &Self::Key,
        ask: &Self::Ask,
        want: usize,
    ) -> impl Future<Output = Result<Claimed<Self::Lease>, DatabaseError>> + Send;

    /// Give back what found no taker, as if it had never been taken.
    fn give_back(&self, leases: Vec<Self::Lease>) -> impl Future<Output = ()> + Send;
}

/// A key that the survey can read.
pub(crate) trait QueueKey: Key {
    /// As JSON.
    fn spelled(&self) -> String;
}

/// How something is taken; equal asks under one key are served together.
pub(crate) trait QueueAsk: Clone + Eq + Hash + Debug + Send + Sync + 'static {
    /// How long the lock lasts.
    fn lock(&self) -> Duration;
}

/// What a claim found.
#[derive(Debug)]
pub(crate) struct Claimed<L> {
    pub(crate) leases: Vec<L>,
    /// As much was picked as was wanted: there may be more.
    pub(crate) filled: bool,
    /// When there may be something to take next.
    pub(crate) due: Option<Duration>,
}

/// The database's word on the next due; what is due this very moment is due in a millisecond.
pub(crate) fn due(seconds: Option<f64>) -> Option<Duration> {
    const SOON: Duration = Duration::from_millis(1);
    seconds.map(|seconds| Duration::try_from_secs_f64(seconds).unwrap_or(SOON).max(SOON))
}
