//! What a turn changed of an instance's values.
//!
//! Folds the events of a turn, in their order, into one change for each key, because one statement
//! can touch a row once.

use std::collections::BTreeMap;

use duroxide::{Event, EventKind};

use crate::number::signed;

/// The net change of a turn.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ValueChanges {
    /// Everything that is not among the changes goes.
    pub(crate) clear_others: bool,
    /// Each key's new value and when it was set; no value is a deleted key.
    pub(crate) changed: BTreeMap<String, (Option<String>, i64)>,
}

impl ValueChanges {
    /// The changes of these events, in their order.
    pub(crate) fn of(events: &[Event]) -> Self {
        let mut changes = Self::default();
        for event in events {
            match &event.kind {
                EventKind::KeyValueSet { key, value, last_updated_at_ms } => {
                    let new = (Some(value.clone()), signed(*last_updated_at_ms));
                    changes.changed.insert(key.clone(), new);
                }
                EventKind::KeyValueCleared { key } => {
                    changes.changed.insert(key.clone(), (None, signed(event.timestamp_ms)));
                }
                EventKind::KeyValuesCleared => {
                    changes.clear_others = true;
                    for change in changes.changed.values_mut() {
                        *change = (None, signed(event.timestamp_ms));
                    }
                }
                _ => {}
            }
        }
        changes
    }
}
