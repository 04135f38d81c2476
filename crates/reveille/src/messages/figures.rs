//! Figures of the queues of this process, read without a query.

use std::sync::atomic::Ordering;

use reveille_wake::{Link, PollMode};

use super::Messages;
use super::error::MessagesError;
use super::statements::COUNT_BUFFERED;
use crate::batcher::BatcherFigures;

/// Figures of the queues of this process.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct MessagesFigures {
    /// Pops that wait or are being answered.
    pub waiting: usize,
    /// Keys that they wait under: a group in a queue or partition, or a name that does not exist
    /// yet.
    pub keys: usize,
    /// How many of these keys are being claimed from.
    pub keys_in_flight: usize,
    /// How many are not claimed from for a while, because they were found empty while the link was
    /// not proven.
    pub keys_backed_off: usize,
    /// How often claim rounds are made without a wake-up.
    pub poll_mode: PollMode,
    /// The state of the LISTEN connection.
    pub link: Link,
    /// The batchers of pushes and acks.
    pub batchers: Vec<BatcherFigures>,
    /// Acks that came without a lease.
    pub unfenced_acknowledgements: u64,
    /// Messages that became dead letters because they were claimed too often without an answer,
    /// found by pops of this process.
    pub buried_by_claims: u64,
    /// Partitions with undelivered messages that no consumer would have been woken for, found and
    /// repaired by the upkeep of this process. Anything but zero is a bug in Reveille.
    pub repairs: u64,
}

impl Messages {
    /// The figures of this process. Runs no query.
    pub fn figures(&self) -> MessagesFigures {
        let parts = &self.parts;
        let pops = parts.popper.figures();
        let mut batchers = parts.pusher.figures();
        batchers.push(parts.settler.figures());
        MessagesFigures {
            waiting: pops.waiting,
            keys: pops.keys.demanded,
            keys_in_flight: pops.keys.in_flight,
            keys_backed_off: pops.keys.backed_off,
            poll_mode: pops.poll_mode,
            link: parts.context.database.link(),
            batchers,
            unfenced_acknowledgements: self.unfenced_acknowledgements(),
            buried_by_claims: parts.context.tally.buried.load(Ordering::Relaxed),
            repairs: parts.context.tally.repairs.load(Ordering::Relaxed),
        }
    }

    /// How many committed pushes wait in the outbox, not yet in their partitions; counted up to a
    /// million.
    pub async fn buffered(&self) -> Result<i64, MessagesError> {
        let row = self.database().administer().await?.query_opt(&COUNT_BUFFERED, &[]).await?;
        Ok(row.map_or(0, |row| row.get(0)))
    }
}
