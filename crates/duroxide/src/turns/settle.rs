//! The end of a turn: committed whole, given back, or kept a little longer.
//!
//! Promises that a turn is committed once: the token is compared under the mailbox's lock, in the
//! same statement that writes, and a try whose answer was lost recognises its own commit. Refuses
//! with a permanent error a turn whose lock is no longer ours.
//!
//! Next: [`crate::work_queue`], which wakes the fetches for what the turn sent.

use std::time::Duration;

use duroxide::Event;
use duroxide::providers::{ExecutionMetadata, ProviderError, ScheduledActivityIdentifier, WorkItem};
use tokio_postgres::Row;

use super::Turns;
use super::columns::Columns;
use crate::number::seconds;
use crate::queue::due;
use crate::statements::{ABANDON_TURN, RENEW_TURN, SETTLE_TURN};
use crate::store::Settled;
use crate::token::TurnToken;

const ACK: &str = "ack_orchestration_item";
const ABANDON: &str = "abandon_orchestration_item";
const RENEW: &str = "renew_orchestration_item_lock";

/// Everything a turn writes.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) execution: u64,
    pub(crate) events: Vec<Event>,
    pub(crate) activities: Vec<WorkItem>,
    pub(crate) messages: Vec<WorkItem>,
    pub(crate) metadata: ExecutionMetadata,
    pub(crate) cancelled: Vec<ScheduledActivityIdentifier>,
}

/// Which fetches to wake after a turn.
#[derive(Debug, Default)]
pub(crate) struct Sent {
    /// Activities were scheduled.
    pub(crate) activities: bool,
    /// There are messages, for this instance or others; the first that waits becomes visible after
    /// the delay.
    pub(crate) messages: bool,
    pub(crate) due: Option<Duration>,
}

impl Turns {
    /// Commit a turn.
    pub(crate) async fn settle(&self, token: &str, outcome: Outcome) -> Result<Sent, ProviderError> {
        let token = TurnToken::parse(token).ok_or_else(|| ProviderError::permanent(ACK, "Invalid lock token"))?;
        if outcome.events.iter().any(|event| event.event_id() == 0) {
            return Err(ProviderError::permanent(ACK, "event_id must be set by runtime"));
        }
        let columns = Columns::of(ACK, &outcome)?;
        let params = columns.params(&token, &outcome);
        let mut settled = self.store.settle(ACK, &SETTLE_TURN, &params).await?;
        if settled.doubted && settled.rows.first().is_some_and(is_strange) {
            // The first try was still running when the second began, and a statement sees only what
            // was committed before it began.
            settled = Settled { doubted: true, ..self.store.settle(ACK, &SETTLE_TURN, &params).await? };
        }
        let Some(row) = settled.rows.first() else { return Ok(Sent::default()) };
        if row.get::<_, bool>("held") {
            let messages = columns.has_messages() || row.get::<_, bool>("left_over");
            return Ok(Sent { activities: columns.has_activities(), messages, due: due(row.get("due_s")) });
        }
        if settled.doubted && row.get::<_, bool>("already") {
            return Ok(Sent { activities: true, messages: true, due: None });
        }
        Err(ProviderError::permanent(
            ACK,
            "Invalid lock token: the lock ended, was given back, or its instance deleted",
        ))
    }

    /// Give a turn back.
    pub(crate) async fn abandon(
        &self,
        token: &str,
        delay: Option<Duration>,
        uncounted: bool,
    ) -> Result<(), ProviderError> {
        let invalid = || ProviderError::permanent(ABANDON, "Invalid lock token");
        let TurnToken { nonce, instance } = TurnToken::parse(token).ok_or_else(invalid)?;
        let delay = delay.map(seconds);
        let given = self.store.settle(ABANDON, &ABANDON_TURN, &[&instance, &nonce, &delay, &uncounted]).await?;
        // A second try that finds nothing counts the first as done, so that a wake-up follows.
        if given.rows.is_empty() && !given.doubted { Err(invalid()) } else { Ok(()) }
    }

    /// Keep a turn.
    pub(crate) async fn renew(&self, token: &str, lock: Duration) -> Result<(), ProviderError> {
        let lost = || ProviderError::permanent(RENEW, "Lock token invalid, expired, or already acked");
        let TurnToken { nonce, instance } = TurnToken::parse(token).ok_or_else(lost)?;
        let rows = self.store.repeat_within(lock, RENEW, &RENEW_TURN, &[&instance, &nonce, &seconds(lock)]).await?;
        if rows.is_empty() { Err(lost()) } else { Ok(()) }
    }
}

/// The turn is not ours, and we do not see that it was.
fn is_strange(row: &Row) -> bool {
    !row.get::<_, bool>("held") && !row.get::<_, bool>("already")
}
