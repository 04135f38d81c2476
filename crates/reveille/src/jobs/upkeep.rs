//! Upkeep of the jobs: deletes ended jobs and unique keys that need not be kept, in bounded steps,
//! in every process with a worker.

use std::sync::Arc;

use super::Jobs;
use super::context::JobsContext;
use super::error::JobsError;
use super::statements::{FORGET_KEYS, HOLD_KEYS, SWEEP};
use crate::database::outage::warn_unless_away;
use crate::database::{DatabaseError, Purpose};
use crate::service::upkeep::{self, Next};

/// Rows of one step.
const STEP: i64 = 2000;

/// Runs upkeep now and then, until the jobs close.
pub(super) fn start(context: &Arc<JobsContext>) {
    let shared = Arc::clone(context);
    upkeep::start(&context.service, context.options.upkeep_interval, move || {
        let context = Arc::clone(&shared);
        async move {
            if let Err(error) = sweep(&context).await {
                warn_unless_away!(&error, %error, "upkeep of the jobs failed, the next round tries again");
            }
            Next::Later
        }
    });
}

impl Jobs {
    /// Run upkeep now. Returns how many ended jobs were deleted.
    pub async fn upkeep(&self) -> Result<u64, JobsError> {
        Ok(sweep(&self.parts.context).await?)
    }
}

async fn sweep(context: &JobsContext) -> Result<u64, DatabaseError> {
    let mut swept = 0;
    loop {
        let row = context.database.administer().await?.query_opt(&SWEEP, &[&STEP]).await?;
        let step = row.map_or(0, |row| row.get::<_, i64>("swept"));
        swept += step.unsigned_abs();
        if step < STEP || context.service.end().is_cancelled() {
            break;
        }
    }
    forget_keys(context).await?;
    Ok(swept)
}

/// In two statements of one transaction: only the second sees jobs that were given a key while the
/// first waited for it.
async fn forget_keys(context: &JobsContext) -> Result<(), DatabaseError> {
    let mut connection = context.database.connection(Purpose::Dedicated("upkeep")).await?;
    let mut after: Vec<u8> = Vec::new();
    while !context.service.end().is_cancelled() {
        let transaction = connection.transaction().await?;
        let rows = transaction.query(&HOLD_KEYS, &[&after, &STEP]).await?;
        let keys: Vec<&[u8]> = rows.iter().map(|row| row.get("key")).collect();
        let Some(last) = keys.last() else { break };
        after = last.to_vec();
        transaction.execute(&FORGET_KEYS, &[&keys]).await?;
        transaction.commit_known().await?;
    }
    Ok(())
}
