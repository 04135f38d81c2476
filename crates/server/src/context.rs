//! What the routes of a server share.

use std::sync::Arc;
use std::time::Duration;

use reveille::messages::{Messages, Subscription};
use tokio_util::sync::CancellationToken;

use crate::budget::Budget;
use crate::figures::Figures;
use crate::options::Limits;
use crate::prober::Readiness;

/// Shared by all requests of a server.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) messages: Messages,
    pub(crate) readiness: Readiness,
    pub(crate) limits: Arc<Limits>,
    pub(crate) defaults: PopDefaults,
    pub(crate) figures: Arc<Figures>,
    /// Bytes of answers that their clients have not taken yet.
    pub(crate) answers: Budget,
    /// When cancelled, no pop waits any more.
    pub(crate) drain: CancellationToken,
}

/// The parameters of a pop that gives none.
#[derive(Debug, Clone)]
pub(crate) struct PopDefaults {
    pub(crate) timeout: Duration,
    pub(crate) batch: u32,
    pub(crate) subscription: Subscription,
}

impl Default for PopDefaults {
    fn default() -> Self {
        Self { timeout: Duration::from_secs(30), batch: 1, subscription: Subscription::All }
    }
}
