//! How the queues of this process are doing, without asking the database.

use std::sync::atomic::Ordering;

use reveille_wake::{Link, PollMode};

use super::Messages;
use super::error::MessagesError;
use super::statements::COUNT_BUFFERED;
use crate::batcher::BatcherFigures;

/// What can be seen from inside.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct MessagesFigures {
    /// Pops that wait or are being answered.
    pub waiting: usize,
    /// What they wait for: queue, partition and group, or a name that nothing has yet.
    pub keys: usize,
    /// How many of those are being looked at.
    pub keys_in_flight: usize,
    /// How many are left alone for now, because they were found empty while the link was not
    /// proven.
    pub keys_backed_off: usize,
    /// How often looks are made without being rung.
    pub poll_mode: PollMode,
    /// How the source of hints is.
    pub link: Link,
    /// Pushes and acks, lane by lane.
    pub batchers: Vec<BatcherFigures>,
    /// Acks that came without a lease.
    pub unfenced_acknowledgements: u64,
    /// Messages that went to the dead letters because they were claimed too often without an
    /// answer, found by pops of this process.
    pub buried_by_claims: u64,
    /// Groups that upkeep of this process had to tell of messages that waited for them. Anything
    /// but zero is a defect.
    pub repairs: u64,
}

impl Messages {
    /// How this process is doing. Asks nobody.
    pub fn figures(&self) -> MessagesFigures {
        let parts = &self.parts;
        let (waiting, (keys, keys_in_flight, keys_backed_off), poll_mode) = parts.popper.figures();
        let mut batchers = parts.pusher.figures();
        batchers.push(parts.settler.figures());
        MessagesFigures {
            waiting,
            keys,
            keys_in_flight,
            keys_backed_off,
            poll_mode,
            link: parts.context.database.link(),
            batchers,
            unfenced_acknowledgements: self.unfenced_acknowledgements(),
            buried_by_claims: parts.context.tally.buried.load(Ordering::Relaxed),
            repairs: parts.context.tally.repairs.load(Ordering::Relaxed),
        }
    }

    /// How many pushes stand in the outbox, committed and not yet in their partitions; counted up
    /// to a million.
    pub async fn buffered(&self) -> Result<i64, MessagesError> {
        let row = self.database().administer().await?.query_opt(&COUNT_BUFFERED, &[]).await?;
        Ok(row.map_or(0, |row| row.get(0)))
    }
}
