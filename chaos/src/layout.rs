//! Which queues there are, which processes use them, and what each group may expect.

use serde::{Deserialize, Serialize};

use super::clock::{Micros, seconds};
use super::history::Promise;

/// How long a claim lasts in every queue here. Long enough for a consumer on a busy machine, short
/// enough to be outlived.
pub(crate) const LEASE_S: u64 = 3;
pub(crate) const LEASE: Micros = seconds(LEASE_S);

/// A queue of the run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Queue {
    pub(crate) name: &'static str,
    pub(crate) partitions: u32,
    pub(crate) groups: &'static [(&'static str, Promise)],
}

/// Where most messages go; two groups read all of them.
pub(crate) const ORDERS: Queue =
    Queue { name: "orders", partitions: 24, groups: &[("billing", Promise::Leased), ("shipping", Promise::Leased)] };
/// Read by consumers that fail.
pub(crate) const NOTES: Queue = Queue { name: "notes", partitions: 8, groups: &[("fragile", Promise::Leased)] };
/// Popped and settled at once.
pub(crate) const TICKS: Queue = Queue { name: "ticks", partitions: 4, groups: &[("auto", Promise::AutoAck)] };
/// Read by a group that is moved back now and then.
pub(crate) const REPLAY: Queue = Queue { name: "replay", partitions: 3, groups: &[("seeker", Promise::Sought)] };
/// Consumed and produced in one transaction: each message of the inbox is forwarded exactly once.
pub(crate) const INBOX: Queue = Queue { name: "inbox", partitions: 6, groups: &[("forwarder", Promise::Leased)] };
pub(crate) const FORWARDED: Queue = Queue { name: "forwarded", partitions: 6, groups: &[("archive", Promise::Leased)] };
/// Written and read only by sabotage.
pub(crate) const TRAP: Queue = Queue { name: "trap", partitions: 1, groups: &[("audit", Promise::Leased)] };
/// Jobs and orchestrations: no queues of messages, but checked in the same way.
pub(crate) const JOBS: Queue = Queue { name: "jobs", partitions: 1, groups: &[("workers", Promise::Effects)] };
pub(crate) const FLOWS: Queue = Queue { name: "flows", partitions: 1, groups: &[("runtime", Promise::Effects)] };

/// The queues of messages.
pub(crate) const QUEUES: [Queue; 7] = [ORDERS, NOTES, TICKS, REPLAY, INBOX, FORWARDED, TRAP];
/// Everything that is checked.
pub(crate) const CHECKED: [Queue; 9] = [ORDERS, NOTES, TICKS, REPLAY, INBOX, FORWARDED, TRAP, JOBS, FLOWS];

/// What is added to the key of a message when it is forwarded.
pub(crate) const FORWARD_MARK: u64 = 1 << 50;

/// What a child process does.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum Role {
    /// Pushes over HTTP, `batch` at a time, about `rate` messages a second.
    Producer {
        queue: String,
        partitions: u32,
        batch: u32,
        rate: u32,
        manner: PushManner,
    },
    /// Pushes in SQL, in transactions that it holds open.
    Foreign {
        queue: String,
        partitions: u32,
        rate: u32,
    },
    Consumer {
        queue: String,
        group: String,
        batch: u32,
        partitions: u32,
        manner: Manner,
    },
    /// Consumes and produces in one transaction.
    Forwarder,
    /// Runs jobs, each with an effect in the transaction that completes it.
    Worker,
    /// Enqueues jobs in SQL.
    Enqueuer {
        rate: u32,
    },
    /// Starts and runs orchestrations.
    Flows {
        rate: u32,
    },
}

/// What a producer does when it gets no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum PushManner {
    /// Goes on.
    Once,
    /// Sends the push again under the same transaction id, until there is an answer.
    Repeat,
}

/// How a consumer treats what it gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Manner {
    /// Acks, sometimes late, sometimes after a renewal.
    Acks,
    /// Fails, returns and buries some.
    Nacks,
    AutoAck,
}

impl Role {
    pub(crate) fn is_producer(&self) -> bool {
        matches!(self, Self::Producer { .. } | Self::Foreign { .. } | Self::Enqueuer { .. })
    }

    pub(crate) fn is_worker(&self) -> bool {
        matches!(self, Self::Worker | Self::Flows { .. })
    }

    /// What it is called in the history.
    pub(crate) fn title(&self) -> String {
        match self {
            Self::Producer { queue, .. } => format!("producer of {queue}"),
            Self::Foreign { queue, .. } => format!("SQL producer of {queue}"),
            Self::Consumer { queue, group, .. } => format!("consumer of {queue} for {group}"),
            Self::Forwarder => "forwarder".to_owned(),
            Self::Worker => "job worker".to_owned(),
            Self::Enqueuer { .. } => "SQL enqueuer".to_owned(),
            Self::Flows { .. } => "orchestrations".to_owned(),
        }
    }
}

fn producer(queue: Queue, batch: u32, rate: u32, manner: PushManner) -> Role {
    Role::Producer { queue: queue.name.to_owned(), partitions: queue.partitions, batch, rate, manner }
}

fn consumer(queue: Queue, group: usize, (batch, partitions): (u32, u32), manner: Manner) -> Role {
    let group = queue.groups[group].0.to_owned();
    Role::Consumer { queue: queue.name.to_owned(), group, batch, partitions, manner }
}

/// Every process that takes part, at `rate` messages a second for the main queue.
pub(crate) fn roles(rate: u32) -> Vec<Role> {
    use PushManner::{Once, Repeat};
    let mut roles = vec![
        producer(ORDERS, 120, rate / 2, Repeat),
        producer(ORDERS, 40, rate / 3, Once),
        producer(ORDERS, 1, 40, Repeat),
        producer(NOTES, 8, 60, Repeat),
        producer(TICKS, 5, 60, Once),
        producer(REPLAY, 2, 20, Repeat),
        producer(INBOX, 6, 80, Repeat),
        Role::Foreign { queue: ORDERS.name.to_owned(), partitions: ORDERS.partitions, rate: 60 },
    ];
    for group in [0, 1] {
        for _ in 0..3 {
            roles.push(consumer(ORDERS, group, (200, 4), Manner::Acks));
        }
    }
    for _ in 0..2 {
        roles.push(consumer(NOTES, 0, (10, 2), Manner::Nacks));
        roles.push(consumer(TICKS, 0, (10, 1), Manner::AutoAck));
        roles.push(consumer(REPLAY, 0, (50, 1), Manner::Acks));
        roles.push(consumer(FORWARDED, 0, (20, 2), Manner::Acks));
        roles.push(Role::Forwarder);
    }
    roles.extend([Role::Enqueuer { rate: 30 }, Role::Worker, Role::Worker]);
    roles.extend([Role::Flows { rate: 3 }, Role::Flows { rate: 3 }]);
    roles
}
