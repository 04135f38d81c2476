//! The end of a turn: committed whole, given back, or kept a little longer.
//!
//! Promises that a turn is committed once: the token is compared under the mailbox's lock, in the same statement that
//! writes, and a try whose answer was lost recognises its own commit. Refuses with a permanent error what is no longer ours.
//!
//! Next: [`crate::lane`], which is rung for what the turn sent.

use std::time::Duration;

use duroxide::providers::{ExecutionMetadata, ProviderError, ScheduledActivityIdentifier, WorkItem};
use duroxide::{Event, EventKind};
use reveille::database::Param;

use super::Turns;
use super::kv::ValueChanges;
use crate::error::unreadable;
use crate::number::{packed, seconds, signed};
use crate::queue::due;
use crate::statements::{ABANDON_TURN, RENEW_TURN, SETTLE_TURN};
use crate::token::TurnToken;
use crate::work_item::{Activity, Message};

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

/// Whom to wake after a turn.
#[derive(Debug, Default)]
pub(crate) struct Sent {
    /// Activities were scheduled.
    pub(crate) activities: bool,
    /// There are messages, for this instance or others; the first that waits becomes visible after the delay.
    pub(crate) messages: bool,
    pub(crate) due: Option<Duration>,
}

impl Turns {
    /// Commit a turn.
    pub(crate) async fn settle(&self, token: &str, outcome: Outcome) -> Result<Sent, ProviderError> {
        let token = TurnToken::parse(token).ok_or_else(|| ProviderError::permanent(ACK, "Invalid lock token"))?;
        let Outcome { execution, events, metadata, .. } = &outcome;
        if events.iter().any(|event| event.event_id() == 0) {
            return Err(ProviderError::permanent(ACK, "event_id must be set by runtime"));
        }
        let ended = matches!(metadata.status.as_deref(), Some("Completed" | "Failed" | "ContinuedAsNew"));
        let custom = events.iter().rev().find_map(|event| match &event.kind {
            EventKind::CustomStatusUpdated { status } => Some(status.clone()),
            _ => None,
        });
        let (ids, texts) = written(ACK, events)?;
        let values = ValueChanges::of(events);
        let keys: Vec<&str> = values.changed.keys().map(String::as_str).collect();
        let news: Vec<Option<&str>> = values.changed.values().map(|(value, _)| value.as_deref()).collect();
        let times: Vec<i64> = values.changed.values().map(|(_, at)| *at).collect();
        let scheduled = Scheduled::of(&outcome)?;
        let gone = Gone::of(&outcome.cancelled);
        let letters = Letters::of(&outcome.messages)?;
        let pinned = metadata.pinned_duroxide_version.as_ref().map(packed);
        let (is_custom, custom) = (custom.is_some(), custom.flatten());
        let execution = signed(*execution);
        let params: [Param<'_>; 32] = [
            &token.instance,
            &token.nonce,
            &execution,
            &metadata.orchestration_name,
            &metadata.orchestration_version,
            &metadata.parent_instance_id,
            &pinned,
            &metadata.status,
            &metadata.output,
            &ended,
            &custom,
            &is_custom,
            &ids,
            &texts,
            &keys,
            &news,
            &times,
            &values.clear_others,
            &scheduled.instances,
            &scheduled.executions,
            &scheduled.ids,
            &scheduled.sessions,
            &scheduled.tags,
            &scheduled.texts,
            &gone.instances,
            &gone.executions,
            &gone.ids,
            &letters.instances,
            &letters.texts,
            &letters.visible_at,
            &letters.starts,
            &letters.events,
        ];
        let settled = self.store.settle(ACK, &SETTLE_TURN, &params).await?;
        let Some(row) = settled.rows.first() else { return Ok(Sent::default()) };
        if row.get::<_, bool>("held") {
            let messages = !letters.texts.is_empty() || row.get::<_, bool>("left_over");
            return Ok(Sent { activities: !scheduled.texts.is_empty(), messages, due: due(row.get("due_s")) });
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
        let rows = self.store.repeat(ABANDON, &ABANDON_TURN, &[&instance, &nonce, &delay, &uncounted]).await?;
        if rows.is_empty() { Err(invalid()) } else { Ok(()) }
    }

    /// Keep a turn.
    pub(crate) async fn renew(&self, token: &str, lock: Duration) -> Result<(), ProviderError> {
        let lost = || ProviderError::permanent(RENEW, "Lock token invalid, expired, or already acked");
        let TurnToken { nonce, instance } = TurnToken::parse(token).ok_or_else(lost)?;
        let rows = self.store.repeat_within(lock, RENEW, &RENEW_TURN, &[&instance, &nonce, &seconds(lock)]).await?;
        if rows.is_empty() { Err(lost()) } else { Ok(()) }
    }
}

/// The ids and texts of events.
pub(crate) fn written(operation: &str, events: &[Event]) -> Result<(Vec<i64>, Vec<String>), ProviderError> {
    let ids = events.iter().map(|event| signed(event.event_id())).collect();
    let text = |event| serde_json::to_string(event).map_err(|error| unreadable(operation, "an event", &error));
    Ok((ids, events.iter().map(text).collect::<Result<_, _>>()?))
}

/// Activities to add, as columns.
#[derive(Debug, Default)]
struct Scheduled {
    instances: Vec<String>,
    executions: Vec<i64>,
    ids: Vec<i64>,
    sessions: Vec<Option<String>>,
    tags: Vec<Option<String>>,
    texts: Vec<String>,
}

impl Scheduled {
    /// What is scheduled and cancelled in the same turn was never there.
    fn of(outcome: &Outcome) -> Result<Self, ProviderError> {
        let mut scheduled = Self::default();
        for item in &outcome.activities {
            let Some(activity) = Activity::of(ACK, item)? else { continue };
            let is_cancelled = outcome.cancelled.iter().any(|cancelled| {
                cancelled.instance == activity.instance
                    && signed(cancelled.execution_id) == activity.execution
                    && signed(cancelled.activity_id) == activity.id
            });
            if is_cancelled {
                continue;
            }
            scheduled.instances.push(activity.instance);
            scheduled.executions.push(activity.execution);
            scheduled.ids.push(activity.id);
            scheduled.sessions.push(activity.session);
            scheduled.tags.push(activity.tag);
            scheduled.texts.push(activity.text);
        }
        Ok(scheduled)
    }
}

/// Activities to remove, as columns.
#[derive(Debug)]
struct Gone<'a> {
    instances: Vec<&'a str>,
    executions: Vec<i64>,
    ids: Vec<i64>,
}

impl<'a> Gone<'a> {
    fn of(cancelled: &'a [ScheduledActivityIdentifier]) -> Self {
        Self {
            instances: cancelled.iter().map(|one| one.instance.as_str()).collect(),
            executions: cancelled.iter().map(|one| signed(one.execution_id)).collect(),
            ids: cancelled.iter().map(|one| signed(one.activity_id)).collect(),
        }
    }
}

/// Messages to add, as columns.
#[derive(Debug, Default)]
struct Letters {
    instances: Vec<String>,
    texts: Vec<String>,
    visible_at: Vec<Option<f64>>,
    starts: Vec<bool>,
    events: Vec<bool>,
}

impl Letters {
    fn of(items: &[WorkItem]) -> Result<Self, ProviderError> {
        let mut letters = Self::default();
        for item in items {
            let Some(message) = Message::of(ACK, item)? else { continue };
            letters.instances.push(message.instance);
            letters.texts.push(message.text);
            letters.visible_at.push(message.visible_at);
            letters.starts.push(message.is_start);
            letters.events.push(message.is_event);
        }
        Ok(letters)
    }
}
