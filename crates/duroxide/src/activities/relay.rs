//! From one activity to the next, in one statement.
//!
//! The commit of an outcome is waited for anyway; a slot that asked for its next activity only then
//! would pay a second statement and a turn of the dispatcher. Promises what [`Activities::settle`]
//! promises, and to say when an activity may have been taken of which nothing was heard.
//!
//! Next: [`super::shelf`].

use duroxide::providers::{ProviderError, WorkItem};
use reveille::database::Param;

use super::shelf::WaitingDemand;
use super::{ACK, Activities, Task, lost, outcome};
use crate::number::seconds;
use crate::statements::RELAY_ACTIVITY;

/// What a settlement brought.
#[derive(Debug, Default)]
pub(crate) struct Relayed {
    /// An outcome was sent.
    pub(crate) sent: bool,
    /// The next activity for whoever did this one.
    pub(crate) next: Option<Task>,
    /// An earlier try may have taken one, and its answer was lost.
    pub(crate) doubted: bool,
}

impl Activities {
    /// Remove an activity and send its outcome, and take the next under token `next` for a slot
    /// that will ask like this.
    pub(crate) async fn relay(
        &self,
        token: &str,
        completion: Option<&WorkItem>,
        asked: &WaitingDemand,
        next: &str,
    ) -> Result<Relayed, ProviderError> {
        let (key, ask) = asked;
        if self.sessions.are_due() {
            let sent = self.settle(token, completion).await?;
            return Ok(Relayed { sent, ..Relayed::default() });
        }
        let (instance, text) = outcome(completion)?;
        let (sent, lock) = (text.is_some(), seconds(ask.lock));
        let params: [Param<'_>; 8] = [&token, &instance, &text, &next, &lock, &key.names(), &key.untagged, &key.any];
        let begun = self.glances.begin();
        let settled = self.store.settle(ACK, &RELAY_ACTIVITY, &params).await?;
        match settled.rows.first() {
            None if !settled.doubted => Err(lost()),
            None => Ok(Relayed { sent, next: None, doubted: true }),
            Some(row) => {
                if row.get("is_bound") {
                    self.sessions.seen_due();
                }
                Ok(Relayed { sent, next: Task::of(row, Some(begun)), doubted: false })
            }
        }
    }
}
