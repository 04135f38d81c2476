//! Writes a child's part of the history.

use std::io::Write;

use crate::clock::now;
use crate::history::{Event, Key, Keys, Outcome, Place, Record, Status};

/// Keys of one process: no process makes more.
const KEYS_OF_ONE: Key = 10_000_000;

/// Numbers the calls and keys of one process, and writes its records.
#[derive(Debug)]
pub(super) struct Recorder {
    actor: u32,
    calls: u64,
    next_key: Key,
}

impl Recorder {
    pub(super) fn new(actor: u32) -> Self {
        Self { actor, calls: 0, next_key: Key::from(actor) * KEYS_OF_ONE }
    }

    /// Keys that no process had before.
    pub(super) fn new_keys(&mut self, many: u32) -> Keys {
        let first = self.next_key;
        self.next_key += Key::from(many);
        (first..self.next_key).collect()
    }

    /// One write for a line: a process that is killed leaves whole lines, and at most one part of a
    /// line at the end.
    pub(super) fn write(&self, event: Event) {
        let record = Record { at: now(), by: self.actor, event };
        if let Ok(mut line) = serde_json::to_string(&record) {
            line.push('\n');
            let mut out = std::io::stdout().lock();
            // Without a reader there is no run, and this process ends with its standard input.
            let _ = out.write_all(line.as_bytes()).and_then(|()| out.flush());
        }
    }

    pub(super) fn push(&mut self, place: &Place, keys: &Keys) -> u64 {
        self.calls += 1;
        self.write(Event::Push { op: self.calls, place: place.clone(), keys: keys.clone() });
        self.calls
    }

    pub(super) fn pushed(&self, op: u64, keys: Keys, outcome: Outcome) {
        if !keys.is_empty() {
            self.write(Event::Pushed { op, keys, outcome });
        }
    }

    pub(super) fn settle(&mut self, place: &Place, group: &str, lease: &str, (keys, status): (&Keys, Status)) -> u64 {
        self.calls += 1;
        let (place, group, lease) = (place.clone(), group.to_owned(), lease.to_owned());
        self.write(Event::Settle { op: self.calls, place, group, lease, keys: keys.clone(), status });
        self.calls
    }

    pub(super) fn settled(&self, op: u64, keys: Keys, outcome: Outcome) {
        if !keys.is_empty() {
            self.write(Event::Settled { op, keys, outcome });
        }
    }
}
