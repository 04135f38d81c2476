//! Completions: by far the most settlements, and all alike.

use std::collections::HashSet;
use std::sync::Arc;

use super::columns::{Fence, took_ms};
use super::report::report;
use super::{Settled, Settlement, may_repeat};
use crate::batcher::{Failed, Work};
use crate::database::{Connection, DatabaseError};
use crate::jobs::context::JobsContext;
use crate::jobs::lifecycle::State;
use crate::jobs::statements::COMPLETE;

/// The batcher's work.
#[derive(Debug)]
pub(super) struct Complete {
    pub(super) context: Arc<JobsContext>,
}

impl Work for Complete {
    type Item = Settlement;
    type Answer = Settled;
    type Error = DatabaseError;

    fn weight(_: &Settlement) -> usize {
        256
    }

    fn may_repeat(error: &DatabaseError) -> bool {
        may_repeat(error)
    }

    async fn run(
        &self,
        connection: &mut Connection,
        mut done: Vec<Settlement>,
    ) -> Result<Vec<Settled>, Failed<Settlement>> {
        match self.complete(connection, &done).await {
            Ok(settled) => Ok(settled),
            Err(error) => {
                for job in &mut done {
                    job.note_interruption(&error);
                }
                Err((error, done))
            }
        }
    }
}

impl Complete {
    async fn complete(&self, connection: &Connection, done: &[Settlement]) -> Result<Vec<Settled>, DatabaseError> {
        let Fence { ids, epochs, nonces } = Fence::of(done.iter().map(|job| &job.token));
        let (took_ms, keep) = (took_ms(done.iter()), self.context.options.keep_done.as_secs_f64());
        let rows = connection.query(&COMPLETE, &[&ids, &epochs, &nonces, &took_ms, &keep]).await?;
        let recorded: HashSet<i64> = rows.iter().map(|row| row.get("id")).collect();
        let settled = |job: &Settlement| {
            let settled = job.settled(recorded.contains(&job.token.id.0));
            report(&self.context, job, settled, Some(State::Done));
            settled
        };
        Ok(done.iter().map(settled).collect())
    }
}
