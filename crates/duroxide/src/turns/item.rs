//! From a turn as it was read to the item that the runtime understands.
//!
//! Promises that an event or a message which cannot be read makes a `history_error`, never a
//! shorter history: the runtime counts the attempts and ends the orchestration when they are used
//! up.
//!
//! Next: [`super::settle`].

use std::collections::HashMap;

use duroxide::providers::{KvEntry, OrchestrationItem, WorkItem};
use duroxide::{Event, EventKind};

use serde::de::DeserializeOwned;

use super::Turn;
use crate::number::unsigned;

/// What a turn turned out to be.
#[derive(Debug)]
pub(crate) enum Understood {
    /// The runtime can take it.
    Item(Box<OrchestrationItem>),
    /// There are messages, but the one that starts the instance is not visible yet.
    Unstarted,
}

const UNKNOWN: &str = "unknown";

impl Turn {
    /// The item for the runtime.
    pub(crate) fn understand(&self) -> Understood {
        let (messages, unread) = read_all::<WorkItem>(&self.messages);
        let (history, corrupt) = read_all::<Event>(&self.history);
        let Some((name, version)) = self.name_and_version(&messages, &history) else {
            return Understood::Unstarted;
        };
        let corrupt = corrupt.map(|error| format!("Failed to deserialize history: {error}"));
        let unread = unread.map(|error| format!("Failed to deserialize a message: {error}"));
        let history_error = corrupt.or(unread);
        let values = self
            .values
            .iter()
            .map(|(key, value, at)| (key.clone(), KvEntry { value: value.clone(), last_updated_at_ms: unsigned(*at) }));
        Understood::Item(Box::new(OrchestrationItem {
            instance: self.token.instance.clone(),
            orchestration_name: name,
            execution_id: unsigned(self.execution),
            version,
            history: if history_error.is_some() { Vec::new() } else { history },
            messages,
            history_error,
            kv_snapshot: values.collect::<HashMap<_, _>>(),
        }))
    }

    /// Name and version: of the instance, else of its history, else of the message that starts it.
    fn name_and_version(&self, messages: &[WorkItem], history: &[Event]) -> Option<(String, String)> {
        if let Some((name, version)) = &self.instance {
            return Some((name.clone(), version.clone().unwrap_or_else(|| UNKNOWN.to_owned())));
        }
        let started = history.iter().find_map(|event| match &event.kind {
            EventKind::OrchestrationStarted { name, version, .. } => Some((name.clone(), version.clone())),
            _ => None,
        });
        started.or_else(|| {
            messages.iter().find_map(|item| match item {
                WorkItem::StartOrchestration { orchestration, version, .. }
                | WorkItem::ContinueAsNew { orchestration, version, .. } => {
                    Some((orchestration.clone(), version.clone().unwrap_or_else(|| UNKNOWN.to_owned())))
                }
                _ => None,
            })
        })
    }
}

/// What could be read, and the first fault.
fn read_all<T: DeserializeOwned>(texts: &[String]) -> (Vec<T>, Option<serde_json::Error>) {
    let mut fault = None;
    let mut read = Vec::with_capacity(texts.len());
    for text in texts {
        match serde_json::from_str(text) {
            Ok(value) => read.push(value),
            Err(error) => fault = fault.or(Some(error)),
        }
    }
    (read, fault)
}
