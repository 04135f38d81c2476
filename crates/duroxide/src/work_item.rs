//! Where work items go, and what the queues must know of them.
//!
//! Owns the translation between duroxide's items and the columns beside their text. Refuses items
//! in the wrong queue.

use duroxide::providers::{ProviderError, WorkItem};

use crate::error::unreadable;
use crate::number::signed;

/// A message for an instance.
#[derive(Debug)]
pub(crate) struct Message {
    pub(crate) instance: String,
    pub(crate) text: String,
    /// When it becomes visible, in seconds since 1970; `None` for now.
    pub(crate) visible_at: Option<f64>,
    /// It begins an execution, so its instance gets a mailbox.
    pub(crate) is_start: bool,
    /// It is dropped if its instance was never started, as duroxide has it.
    pub(crate) is_event: bool,
}

impl Message {
    /// `None` for what is no message.
    pub(crate) fn of(operation: &str, item: &WorkItem) -> Result<Option<Self>, ProviderError> {
        let Some(instance) = receiver(item) else { return Ok(None) };
        #[expect(clippy::cast_precision_loss, reason = "milliseconds since 1970 fit 53 bits for 285,000 years")]
        let visible_at = match item {
            WorkItem::TimerFired { fire_at_ms, .. } => Some(*fire_at_ms as f64 / 1000.0),
            _ => None,
        };
        Ok(Some(Self {
            instance: instance.to_owned(),
            text: text(operation, item)?,
            visible_at,
            is_start: matches!(item, WorkItem::StartOrchestration { .. } | WorkItem::ContinueAsNew { .. }),
            is_event: matches!(item, WorkItem::QueueMessage { .. }),
        }))
    }
}

/// An activity to run.
#[derive(Debug)]
pub(crate) struct Activity {
    pub(crate) instance: String,
    pub(crate) execution: i64,
    pub(crate) id: i64,
    pub(crate) session: Option<String>,
    pub(crate) tag: Option<String>,
    pub(crate) text: String,
}

impl Activity {
    /// `None` for what is no activity.
    pub(crate) fn of(operation: &str, item: &WorkItem) -> Result<Option<Self>, ProviderError> {
        let WorkItem::ActivityExecute { instance, execution_id, id, session_id, tag, .. } = item else {
            return Ok(None);
        };
        Ok(Some(Self {
            instance: instance.clone(),
            execution: signed(*execution_id),
            id: signed(*id),
            session: session_id.clone(),
            tag: tag.clone(),
            text: text(operation, item)?,
        }))
    }
}

/// The instance a message is for.
fn receiver(item: &WorkItem) -> Option<&str> {
    match item {
        WorkItem::StartOrchestration { instance, .. }
        | WorkItem::ActivityCompleted { instance, .. }
        | WorkItem::ActivityFailed { instance, .. }
        | WorkItem::TimerFired { instance, .. }
        | WorkItem::ExternalRaised { instance, .. }
        | WorkItem::CancelInstance { instance, .. }
        | WorkItem::ContinueAsNew { instance, .. }
        | WorkItem::QueueMessage { instance, .. } => Some(instance),
        WorkItem::SubOrchCompleted { parent_instance, .. } | WorkItem::SubOrchFailed { parent_instance, .. } => {
            Some(parent_instance)
        }
        WorkItem::ActivityExecute { .. } => None,
    }
}

fn text(operation: &str, item: &WorkItem) -> Result<String, ProviderError> {
    serde_json::to_string(item).map_err(|error| unreadable(operation, "a work item", &error))
}
