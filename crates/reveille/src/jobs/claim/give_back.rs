//! How jobs of a lost claim are given back.

use std::sync::Arc;

use tracing::warn;

use crate::database::DatabaseError;
use crate::jobs::context::JobsContext;
use crate::jobs::statements::ABANDON;
use crate::jobs::worker::Claiming;
use crate::service::lost_claims::{GiveBack, Given};

/// Gives jobs back by the nonce of their claim. While it lives, a drain of the worker waits.
pub(super) struct Release {
    pub(super) context: Arc<JobsContext>,
    pub(super) claiming: Claiming,
    pub(super) queues: Vec<String>,
}

impl GiveBack for Release {
    type Nonce = i64;

    /// The nonce is that of one statement, which takes effect whole.
    async fn give_back(&self, nonces: &[i64]) -> Result<Given, DatabaseError> {
        let Self { context, claiming, queues } = self;
        let (worker, lease) = (claiming.worker(), claiming.lease().as_secs_f64());
        let connection = context.database.acquire().await?;
        let given = connection.query(&ABANDON, &[&nonces, &worker, &queues, &lease]).await?;
        if given.is_empty() {
            return Ok(Given::Nothing);
        }
        warn!(jobs = given.len(), "gave back jobs of a lost claim");
        for queue in queues {
            context.notifier.ready(queue);
        }
        Ok(Given::All)
    }
}
