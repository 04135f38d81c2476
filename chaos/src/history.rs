//! What happened, as each process saw it.
//!
//! Append-only: an intent is written before a call and its outcome after it, so that a process
//! which is killed in between leaves an intent without an outcome, which the checker takes as
//! unknown. Every message carries a key of its own. A history is kept in memory for the checker and
//! in a file for people, with a line of JSON for each record.
//!
//! Next: [`super::checker`].

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};

use super::clock::{Micros, now};

/// The name of a message in the ledger: in its payload, given once.
pub(crate) type Key = u64;

/// Something that happened, and the process that saw it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Record {
    pub(crate) at: Micros,
    /// The process that wrote it; one that was killed and started again has another number.
    #[serde(default)]
    pub(crate) by: u32,
    #[serde(flatten)]
    pub(crate) event: Event,
}

/// Where messages lie in order.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Place {
    pub(crate) queue: String,
    pub(crate) partition: String,
}

impl Place {
    pub(crate) fn new(queue: impl Into<String>, partition: impl Into<String>) -> Self {
        Self { queue: queue.into(), partition: partition.into() }
    }
}

/// Keys in their order, written as runs: first key and how many.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Keys(Vec<(Key, u32)>);

/// What a group may expect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Promise {
    /// At least once, in order, fenced.
    Leased,
    /// At most once: what is popped is settled.
    AutoAck,
    /// As leased, but the run moves the group back now and then.
    Sought,
    /// Exactly once, shown by rows that were written with the same commit (jobs, orchestrations).
    Effects,
}

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Outcome {
    Ok,
    /// The answer is that it was a success before.
    Again,
    /// Certainly without effect.
    Refused,
    Unknown,
}

/// The result that a consumer reports for messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Status {
    Completed,
    Failed,
    Retry,
    Dead,
}

/// A beginning or an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Edge {
    Begin,
    End,
}

/// The part of the run that begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Phase {
    Faults,
    Draining,
    /// Everything is healed and drained: what is pushed from here on finds consumers that wait.
    Calm,
    Over,
}

/// Everything that can be recorded.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Event {
    Group {
        queue: String,
        group: String,
        promise: Promise,
        lease: Micros,
    },
    Push {
        op: u64,
        place: Place,
        keys: Keys,
    },
    Pushed {
        op: u64,
        keys: Keys,
        outcome: Outcome,
    },
    /// `began` is when the pop began.
    Delivered {
        began: Micros,
        place: Place,
        group: String,
        lease: String,
        attempt: u32,
        keys: Keys,
    },
    Settle {
        op: u64,
        place: Place,
        group: String,
        lease: String,
        keys: Keys,
        status: Status,
    },
    Settled {
        op: u64,
        keys: Keys,
        outcome: Outcome,
    },
    /// A group is moved back; `began` is when that began.
    Sought {
        began: Micros,
        queue: String,
        group: String,
        outcome: Outcome,
    },
    Fault {
        kind: String,
        target: String,
        edge: Edge,
    },
    Phase {
        phase: Phase,
    },
    /// A group's place that is not empty at the end, as the database shows it.
    Left {
        place: Place,
        group: String,
        pending: u64,
        leased: bool,
    },
    /// A dead letter.
    Buried {
        queue: String,
        group: String,
        key: Key,
    },
    /// How often something was done for good.
    Effect {
        queue: String,
        key: Key,
        times: u32,
    },
    /// What the database counted.
    Counted {
        what: Count,
        count: u64,
    },
}

/// Numbers that must be zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Count {
    Deadlocks,
    /// Groups that reconciliation had to mark ready, or that were stranded at the end.
    Repairs,
    /// Panics in the logs of the servers.
    Panics,
}

impl Keys {
    pub(crate) fn one(key: Key) -> Self {
        Self(vec![(key, 1)])
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = Key> + '_ {
        self.0.iter().flat_map(|&(first, count)| first..first + Key::from(count))
    }

    pub(crate) fn contains(&self, key: Key) -> bool {
        self.0.iter().any(|&(first, count)| (first..first + Key::from(count)).contains(&key))
    }

    pub(crate) fn len(&self) -> usize {
        self.0.iter().map(|&(_, count)| count as usize).sum()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl FromIterator<Key> for Keys {
    fn from_iter<I: IntoIterator<Item = Key>>(keys: I) -> Self {
        let mut runs: Vec<(Key, u32)> = Vec::new();
        for key in keys {
            match runs.last_mut() {
                Some((first, count)) if *first + Key::from(*count) == key => *count += 1,
                _ => runs.push((key, 1)),
            }
        }
        Self(runs)
    }
}

/// All records of a run.
#[derive(Debug)]
pub(crate) struct History {
    log: Mutex<Log>,
    calls: AtomicU64,
}

#[derive(Debug)]
struct Log {
    records: Vec<Record>,
    file: BufWriter<File>,
}

impl History {
    pub(crate) fn create(path: &Path) -> anyhow::Result<Self> {
        let file = BufWriter::new(File::create(path)?);
        Ok(Self { log: Mutex::new(Log { records: Vec::new(), file }), calls: AtomicU64::new(1) })
    }

    /// Records what happens now, seen by the chaos run itself.
    pub(crate) fn note(&self, event: Event) {
        self.add(Record { at: now(), by: 0, event });
    }

    /// A number for a call of the chaos run itself; also the key of a message it pushes.
    pub(crate) fn number(&self) -> u64 {
        self.calls.fetch_add(1, Ordering::Relaxed)
    }

    /// Records what another process saw.
    pub(crate) fn add(&self, record: Record) {
        let mut log = self.log();
        // A file that cannot be written costs the copy for people, not the verdict.
        if let Ok(line) = serde_json::to_string(&record) {
            let _ = writeln!(log.file, "{line}");
        }
        log.records.push(record);
    }

    /// All of it, in the order of time.
    pub(crate) fn finish(self) -> Vec<Record> {
        let mut log = self.log.into_inner().unwrap_or_else(PoisonError::into_inner);
        let _ = log.file.flush();
        log.records.sort_by_key(|record| record.at);
        log.records
    }

    fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_runs_and_keep_their_order() {
        let keys: Keys = [7, 8, 9, 3, 4, 20].into_iter().collect();

        assert_eq!(keys, Keys(vec![(7, 3), (3, 2), (20, 1)]));
        assert_eq!(keys.iter().collect::<Vec<_>>(), [7, 8, 9, 3, 4, 20]);
        assert!(keys.contains(4) && !keys.contains(5));
    }

    #[test]
    fn a_record_survives_its_line() {
        let event = Event::Push { op: 1, place: Place::new("orders", "p1"), keys: Keys::one(5) };
        let line = serde_json::to_string(&Record { at: 9, by: 2, event }).unwrap();

        let read: Record = serde_json::from_str(&line).unwrap();

        assert_eq!((read.at, read.by), (9, 2));
        assert!(matches!(read.event, Event::Push { op: 1, keys, .. } if keys.contains(5)));
    }
}
