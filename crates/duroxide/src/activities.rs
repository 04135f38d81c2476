//! The queue of activities.
//!
//! Owns the claim of activities for worker slots, with tags and sessions, and what becomes of them. Promises that an
//! activity is held by one slot at a time, and one session's activities by one owner.
//!
//! Next: [`crate::lane`].

mod key;

use std::time::Duration;

use duroxide::providers::{ProviderError, WorkItem};
use reveille::database::{DatabaseError, Param, Statement};
use tracing::warn;

pub(crate) use key::{ActivityAsk, ActivityKey};

use crate::number::{seconds, signed};
use crate::queue::{Claimed, Queue, due};
use crate::statements::{
    ABANDON_ACTIVITIES, CLAIM_ACTIVITIES, ENQUEUE_ACTIVITY, RENEW_ACTIVITY, SETTLE_ACTIVITY, SURVEY_ACTIVITIES,
};
use crate::store::Store;
use crate::token::nonces;
use crate::work_item::{Activity, Message};

/// How often a claim that lost every race is made again at once.
const RACES: usize = 3;

/// The queue itself.
#[derive(Debug)]
pub(crate) struct Activities {
    pub(crate) store: Store,
}

/// An activity as it was read, not yet understood.
#[derive(Debug)]
pub(crate) struct Task {
    pub(crate) token: String,
    pub(crate) text: String,
    pub(crate) attempt: u32,
}

impl Queue for Activities {
    type Key = ActivityKey;
    type Ask = ActivityAsk;
    type Lease = Task;
    const NAME: &'static str = "activities";

    fn survey() -> &'static Statement {
        &SURVEY_ACTIVITIES
    }

    async fn claim(&self, key: &ActivityKey, ask: &ActivityAsk, want: usize) -> Result<Claimed<Task>, DatabaseError> {
        let mut tries = 0;
        loop {
            let (tokens, limit) = (nonces(want), signed(want as u64));
            let (lock, session) = (seconds(ask.lock), seconds(ask.session));
            let params: [Param<'_>; 8] =
                [&tokens, &limit, &lock, &key.owner, &session, &key.names(), &key.untagged, &key.any];
            let rows = self.store.look(&CLAIM_ACTIVITIES, &params).await?;
            let picked: i64 = rows.first().map_or(0, |row| row.get("picked"));
            let due = due(rows.first().and_then(|row| row.get("due_s")));
            let taken = rows.iter().filter_map(|row| {
                Some(Task {
                    token: row.get::<_, Option<String>>("lock_token")?,
                    text: row.get("work_item"),
                    attempt: u32::try_from(row.get::<_, i32>("attempt_count")).unwrap_or(0),
                })
            });
            let leases: Vec<Task> = taken.collect();
            tries += 1;
            if leases.is_empty() && picked > 0 && tries < RACES {
                continue;
            }
            return Ok(Claimed { leases, filled: picked >= limit, due });
        }
    }

    async fn give_back(&self, leases: Vec<Task>) {
        let tokens: Vec<String> = leases.into_iter().map(|task| task.token).collect();
        if let Err(error) = self.store.look(&ABANDON_ACTIVITIES, &[&tokens, &0.0_f64, &true]).await {
            warn!(%error, "could not give back activities that nobody took, their locks will end by themselves");
        }
    }
}

impl Activities {
    /// Add an activity.
    pub(crate) async fn enqueue(&self, item: &WorkItem) -> Result<(), ProviderError> {
        const OPERATION: &str = "enqueue_for_worker";
        let wrong = || ProviderError::permanent(OPERATION, "Invalid work item type");
        let activity = Activity::of(OPERATION, item)?.ok_or_else(wrong)?;
        let Activity { instance, execution, id, session, tag, text } = &activity;
        let params: [Param<'_>; 6] = [instance, execution, id, session, tag, text];
        self.store.once(OPERATION, &ENQUEUE_ACTIVITY, &params).await.map(drop)
    }

    /// Remove an activity and send its outcome. Says whether it was sent. A second try that finds the activity gone takes
    /// the first for done: it was, or it was cancelled, and then nobody waits for the outcome.
    pub(crate) async fn settle(&self, token: &str, completion: Option<&WorkItem>) -> Result<bool, ProviderError> {
        const OPERATION: &str = "ack_work_item";
        let message = match completion {
            None => None,
            Some(item @ (WorkItem::ActivityCompleted { .. } | WorkItem::ActivityFailed { .. })) => {
                Message::of(OPERATION, item)?
            }
            Some(_) => return Err(ProviderError::permanent(OPERATION, "Invalid completion type for worker ack")),
        };
        let (instance, text) = message.map(|message| (message.instance, message.text)).unzip();
        let settled = self.store.settle(OPERATION, &SETTLE_ACTIVITY, &[&token, &instance, &text]).await?;
        if settled.rows.is_empty() && !settled.doubted {
            return Err(ProviderError::permanent(OPERATION, "Activity was cancelled or its lock ended"));
        }
        Ok(text.is_some())
    }

    /// Keep an activity.
    pub(crate) async fn renew(&self, token: &str, lock: Duration) -> Result<(), ProviderError> {
        const OPERATION: &str = "renew_work_item_lock";
        let params: [Param<'_>; 2] = [&token, &seconds(lock)];
        let rows = self.store.repeat_within(lock, OPERATION, &RENEW_ACTIVITY, &params).await?;
        if rows.is_empty() {
            return Err(ProviderError::permanent(OPERATION, "Activity was cancelled or its lock ended"));
        }
        Ok(())
    }

    /// Give an activity back.
    pub(crate) async fn abandon(
        &self,
        token: &str,
        delay: Option<Duration>,
        uncounted: bool,
    ) -> Result<(), ProviderError> {
        const OPERATION: &str = "abandon_work_item";
        let (tokens, delay) = (vec![token], seconds(delay.unwrap_or_default()));
        let rows = self.store.repeat(OPERATION, &ABANDON_ACTIVITIES, &[&tokens, &delay, &uncounted]).await?;
        if rows.is_empty() {
            return Err(ProviderError::permanent(OPERATION, "Invalid lock token or already acked"));
        }
        Ok(())
    }
}
