//! The queue of activities.
//!
//! Owns the claim of activities for worker slots, with tags and sessions, and their settlement.
//! Promises that an activity is held by one slot at a time, and one session's activities by one
//! owner.
//!
//! Next: [`crate::work_queue`].

mod key;
mod relay;
mod sessions;
mod shelf;

use std::sync::Arc;
use std::time::Duration;

use duroxide::providers::{ProviderError, WorkItem};
use reveille::database::{DatabaseError, Param};
use reveille::service::Survey;
use tokio_postgres::Row;
use tracing::warn;

pub(crate) use key::{ActivityKey, ActivityRequest};
pub(crate) use relay::Relayed;
use sessions::Sessions;
pub(crate) use shelf::{Fetch, Shelf};

use crate::number::{seconds, signed};
use crate::queue::{ClaimFailed, Claimed, Queue, due};
use crate::read_ahead::{ReadAhead, Reading};
use crate::statements::{
    ABANDON_ACTIVITIES, CLAIM_ACTIVITIES, CLAIM_PLAIN, ENQUEUE_ACTIVITY, RENEW_ACTIVITY, SETTLE_ACTIVITY,
    SURVEY_ACTIVITIES,
};
use crate::store::Store;
use crate::token::nonces;
use crate::work_item::{Activity, Message};

const ACK: &str = "ack_work_item";
/// How often a claim that lost every race is made again at once.
const RACES: usize = 3;

/// The queue itself.
#[derive(Debug)]
pub(crate) struct Activities {
    store: Store,
    sessions: Sessions,
    read_ahead: Arc<ReadAhead>,
}

/// An activity as it was read, not yet understood.
#[derive(Debug)]
pub(crate) struct Task {
    pub(crate) token: String,
    pub(crate) text: String,
    pub(crate) attempt: u32,
    /// The history of its instance as of `reading`; `None` if it must be read.
    pub(crate) events: Option<Vec<String>>,
    /// The statement that took it.
    pub(crate) reading: Reading,
}

impl Queue for Activities {
    type Key = ActivityKey;
    type Request = ActivityRequest;
    type Lease = Task;
    const NAME: &'static str = "activities";

    fn survey() -> Survey {
        SURVEY_ACTIVITIES
    }

    /// The owners differ only while activities of sessions are due.
    fn alike(one: &ActivityKey, other: &ActivityKey) -> bool {
        one.has_tags_of(other)
    }

    async fn claim(
        &self,
        wanted: &[(&ActivityKey, usize)],
        request: &ActivityRequest,
    ) -> Result<Vec<Claimed<Task>>, ClaimFailed<Task>> {
        let plain = match wanted.first() {
            Some((key, _)) if !self.sessions.are_due() => {
                let want = wanted.iter().map(|(_, want)| want).sum();
                self.claim_plain(key, request, want).await.map_err(|error| ClaimFailed::after(Vec::new(), error))?
            }
            _ => None,
        };
        if let Some(plain) = plain {
            return Ok(shared_out(plain, wanted));
        }
        let mut claimed = Vec::with_capacity(wanted.len());
        for (key, want) in wanted {
            match self.claim_owned(key, request, *want).await {
                Ok(one) => claimed.push(one),
                Err(error) => return Err(ClaimFailed::after(claimed, error)),
            }
        }
        Ok(claimed)
    }

    async fn give_back(&self, leases: Vec<Task>) {
        self.release(leases.into_iter().map(|task| task.token).collect()).await;
    }
}

impl Activities {
    pub(crate) fn new(store: Store, read_ahead: Arc<ReadAhead>) -> Self {
        Self { store, sessions: Sessions::default(), read_ahead }
    }

    /// Give back the activities under these tokens, as if they had never been taken.
    pub(crate) async fn release(&self, tokens: Vec<String>) {
        if let Err(error) = self.store.attempt(&ABANDON_ACTIVITIES, &[&tokens, &0.0_f64, &true]).await {
            warn!(%error, "could not give back activities that no slot got; their locks will end by themselves");
        }
    }

    /// `None` while an activity of a session is due.
    async fn claim_plain(
        &self,
        key: &ActivityKey,
        request: &ActivityRequest,
        want: usize,
    ) -> Result<Option<Claimed<Task>>, DatabaseError> {
        let (tokens, limit, lock) = (nonces(want), signed(want as u64), seconds(request.lock));
        let params: [Param<'_>; 6] = [&tokens, &limit, &lock, &key.names(), &key.untagged, &key.any];
        let reading = self.read_ahead.begin();
        let rows = self.store.attempt(&CLAIM_PLAIN, &params).await?;
        if rows.first().is_some_and(|row| row.get("is_bound")) {
            self.sessions.seen_due();
            return Ok(None);
        }
        Ok(Some(found(&rows, limit, Some(reading))))
    }

    /// For one owner, whose sessions these may be.
    async fn claim_owned(
        &self,
        key: &ActivityKey,
        request: &ActivityRequest,
        want: usize,
    ) -> Result<Claimed<Task>, DatabaseError> {
        let mut tries = 0;
        loop {
            let (tokens, limit) = (nonces(want), signed(want as u64));
            let (lock, session) = (seconds(request.lock), seconds(request.session));
            let params: [Param<'_>; 8] =
                [&tokens, &limit, &lock, &key.owner, &session, &key.names(), &key.untagged, &key.any];
            let rows = self.store.attempt(&CLAIM_ACTIVITIES, &params).await?;
            let picked: i64 = rows.first().map_or(0, |row| row.get("picked"));
            let claimed = found(&rows, limit, None);
            tries += 1;
            if claimed.leases.is_empty() && picked > 0 && tries < RACES {
                continue;
            }
            return Ok(claimed);
        }
    }

    /// Add an activity.
    pub(crate) async fn enqueue(&self, item: &WorkItem) -> Result<(), ProviderError> {
        const OPERATION: &str = "enqueue_for_worker";
        let wrong = || ProviderError::permanent(OPERATION, "Invalid work item type");
        let activity = Activity::of(OPERATION, item)?.ok_or_else(wrong)?;
        let Activity { instance, execution, id, session, tag, text } = &activity;
        let params: [Param<'_>; 6] = [instance, execution, id, session, tag, text];
        self.store.once(OPERATION, &ENQUEUE_ACTIVITY, &params).await.map(drop)
    }

    /// Remove an activity and send its outcome. Returns whether it was sent. A second try that
    /// finds the activity gone counts the first as done: either it was, or the activity was
    /// cancelled, and then nobody waits for the outcome.
    pub(crate) async fn settle(&self, token: &str, completion: Option<&WorkItem>) -> Result<bool, ProviderError> {
        let (instance, text) = outcome(completion)?;
        let settled = self.store.settle(ACK, &SETTLE_ACTIVITY, &[&token, &instance, &text]).await?;
        if settled.rows.is_empty() && !settled.doubted {
            return Err(lost());
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
        let given = self.store.settle(OPERATION, &ABANDON_ACTIVITIES, &[&tokens, &delay, &uncounted]).await?;
        // A second try that finds nothing counts the first as done, so that a wake-up follows.
        if given.rows.is_empty() && !given.doubted {
            return Err(ProviderError::permanent(OPERATION, "Invalid lock token or already acked"));
        }
        Ok(())
    }
}

/// The instance that an activity's outcome is for, and the outcome as a message.
fn outcome(completion: Option<&WorkItem>) -> Result<(Option<String>, Option<String>), ProviderError> {
    let message = match completion {
        None => None,
        Some(item @ (WorkItem::ActivityCompleted { .. } | WorkItem::ActivityFailed { .. })) => Message::of(ACK, item)?,
        Some(_) => return Err(ProviderError::permanent(ACK, "Invalid completion type for worker ack")),
    };
    Ok(message.map(|message| (message.instance, message.text)).unzip())
}

fn lost() -> ProviderError {
    ProviderError::permanent(ACK, "Activity was cancelled or its lock ended")
}

impl Task {
    /// `None` for a row without an activity. `reading` is for statements that bring the history.
    fn of(row: &Row, reading: Option<Reading>) -> Option<Self> {
        Some(Self {
            token: row.get::<_, Option<String>>("lock_token")?,
            text: row.get("work_item"),
            attempt: u32::try_from(row.get::<_, i32>("attempt_count")).unwrap_or(0),
            events: reading.and_then(|_| row.get("events")),
            reading: reading.unwrap_or_default(),
        })
    }
}

/// What a claim of up to `limit` answered.
fn found(rows: &[Row], limit: i64, reading: Option<Reading>) -> Claimed<Task> {
    let Some(about) = rows.first() else { return Claimed::nothing() };
    Claimed {
        leases: rows.iter().filter_map(|row| Task::of(row, reading)).collect(),
        filled: about.get::<_, i64>("picked") >= limit,
        contended: about.get("contended"),
        due: due(about.get("due_s")),
    }
}

/// One claim for several keys, divided among them; the flags and the due time are true of each.
fn shared_out(plain: Claimed<Task>, wanted: &[(&ActivityKey, usize)]) -> Vec<Claimed<Task>> {
    let Claimed { leases, filled, contended, due } = plain;
    let mut leases = leases.into_iter();
    let share = |(_, want): &(&ActivityKey, usize)| {
        let leases = leases.by_ref().take(*want).collect();
        Claimed { leases, filled, contended, due }
    };
    wanted.iter().map(share).collect()
}
