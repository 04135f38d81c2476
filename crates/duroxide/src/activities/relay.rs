//! Settles an activity and takes the next one, in one statement.
//!
//! It exists because a slot waits for the commit of an outcome anyway: if it asked for its next
//! activity only afterwards, it would pay a second statement and a turn of the dispatcher. Promises
//! what [`Activities::settle`] promises, and to report when an activity may have been taken in an
//! answer that was lost.
//!
//! Next: [`super::shelf`].

use duroxide::providers::{ProviderError, WorkItem};
use reveille::database::Param;

use super::shelf::Fetch;
use super::{ACK, Activities, Task, lost, outcome};
use crate::number::seconds;
use crate::statements::RELAY_ACTIVITY;

/// What a settlement brought.
#[derive(Debug, Default)]
pub(crate) struct Relayed {
    /// An outcome was sent.
    pub(crate) sent: bool,
    /// The next activity for the slot that did this one.
    pub(crate) next: Option<Task>,
    /// An earlier try may have taken one, and its answer was lost.
    pub(crate) doubted: bool,
}

impl Activities {
    /// Remove an activity and send its outcome, and take the next under token `next` for the slot,
    /// which will fetch as it did before.
    pub(crate) async fn relay(
        &self,
        token: &str,
        completion: Option<&WorkItem>,
        fetch: &Fetch,
        next: &str,
    ) -> Result<Relayed, ProviderError> {
        let (key, request) = fetch;
        if self.sessions.are_due() {
            let sent = self.settle(token, completion).await?;
            return Ok(Relayed { sent, ..Relayed::default() });
        }
        let (instance, text) = outcome(completion)?;
        let (sent, lock) = (text.is_some(), seconds(request.lock));
        let params: [Param<'_>; 8] = [&token, &instance, &text, &next, &lock, &key.names(), &key.untagged, &key.any];
        let reading = self.read_ahead.begin();
        let settled = self.store.settle(ACK, &RELAY_ACTIVITY, &params).await?;
        match settled.rows.first() {
            None if !settled.doubted => Err(lost()),
            None => Ok(Relayed { sent, next: None, doubted: true }),
            Some(row) => {
                if row.get("is_bound") {
                    self.sessions.seen_due();
                }
                Ok(Relayed { sent, next: Task::of(row, Some(reading)), doubted: false })
            }
        }
    }
}
