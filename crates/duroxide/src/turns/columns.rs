//! What a turn writes, as the columns of its one statement.
//!
//! Owns the order of the parameters of `sql/orchestrations/settle.sql`, whose header says what each
//! is.

use std::borrow::Cow;

use duroxide::providers::{ProviderError, ScheduledActivityIdentifier, WorkItem};
use duroxide::{Event, EventKind};
use reveille::database::Param;

use super::kv::ValueChanges;
use super::settle::Outcome;
use crate::error::unreadable;
use crate::nul;
use crate::number::{packed, signed};
use crate::token::TurnToken;
use crate::work_item::{Activity, Message};

/// Everything beside the outcome's own fields.
#[derive(Debug)]
pub(super) struct Columns<'a> {
    execution: i64,
    pinned: Option<i64>,
    ended: bool,
    output: Option<Cow<'a, str>>,
    custom_status: Option<Cow<'a, str>>,
    is_custom: bool,
    event_ids: Vec<i64>,
    event_texts: Vec<String>,
    values: Values,
    scheduled: Scheduled,
    gone: Gone<'a>,
    messages: Messages,
}

impl<'a> Columns<'a> {
    pub(super) fn of(operation: &str, outcome: &'a Outcome) -> Result<Self, ProviderError> {
        let Outcome { execution, events, metadata, .. } = outcome;
        let custom = events.iter().rev().find_map(|event| match &event.kind {
            EventKind::CustomStatusUpdated { status } => Some(status.as_deref()),
            _ => None,
        });
        let (event_ids, event_texts) = written(operation, events)?;
        Ok(Self {
            execution: signed(*execution),
            pinned: metadata.pinned_duroxide_version.as_ref().map(packed),
            ended: matches!(metadata.status.as_deref(), Some("Completed" | "Failed" | "ContinuedAsNew")),
            output: metadata.output.as_deref().map(nul::stored),
            custom_status: custom.flatten().map(nul::stored),
            is_custom: custom.is_some(),
            event_ids,
            event_texts,
            values: Values::of(ValueChanges::of(events)),
            scheduled: Scheduled::of(operation, outcome)?,
            gone: Gone::of(&outcome.cancelled),
            messages: Messages::of(operation, &outcome.messages)?,
        })
    }

    pub(super) fn has_activities(&self) -> bool {
        !self.scheduled.texts.is_empty()
    }

    pub(super) fn has_messages(&self) -> bool {
        !self.messages.texts.is_empty()
    }

    /// In the statement's order.
    pub(super) fn params<'p>(&'p self, token: &'p TurnToken, outcome: &'p Outcome) -> [Param<'p>; 32] {
        let Self { values, scheduled, gone, messages, .. } = self;
        [
            &token.instance,
            &token.nonce,
            &self.execution,
            &outcome.metadata.orchestration_name,
            &outcome.metadata.orchestration_version,
            &outcome.metadata.parent_instance_id,
            &self.pinned,
            &outcome.metadata.status,
            &self.output,
            &self.ended,
            &self.custom_status,
            &self.is_custom,
            &self.event_ids,
            &self.event_texts,
            &values.keys,
            &values.texts,
            &values.times,
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
            &messages.instances,
            &messages.texts,
            &messages.visible_at,
            &messages.starts,
            &messages.events,
        ]
    }
}

/// Values to change.
#[derive(Debug, Default)]
struct Values {
    clear_others: bool,
    keys: Vec<String>,
    texts: Vec<Option<String>>,
    times: Vec<i64>,
}

impl Values {
    fn of(changes: ValueChanges) -> Self {
        let mut values = Self { clear_others: changes.clear_others, ..Self::default() };
        for (key, (text, time)) in changes.changed {
            values.keys.push(nul::stored(&key).into_owned());
            values.texts.push(text.map(|text| nul::stored(&text).into_owned()));
            values.times.push(time);
        }
        values
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
    fn of(operation: &str, outcome: &Outcome) -> Result<Self, ProviderError> {
        let mut scheduled = Self::default();
        for item in &outcome.activities {
            let Some(activity) = Activity::of(operation, item)? else { continue };
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
struct Messages {
    instances: Vec<String>,
    texts: Vec<String>,
    visible_at: Vec<Option<f64>>,
    starts: Vec<bool>,
    events: Vec<bool>,
}

impl Messages {
    fn of(operation: &str, items: &[WorkItem]) -> Result<Self, ProviderError> {
        let mut messages = Self::default();
        for item in items {
            let Some(message) = Message::of(operation, item)? else { continue };
            messages.instances.push(message.instance);
            messages.texts.push(message.text);
            messages.visible_at.push(message.visible_at);
            messages.starts.push(message.is_start);
            messages.events.push(message.is_event);
        }
        Ok(messages)
    }
}
