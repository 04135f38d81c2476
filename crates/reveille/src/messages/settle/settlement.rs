//! The settlement that a consumer sends for its lease, and the answer it gets.
//!
//! Next: [`super::work`], which sends settlements to the database.

use crate::messages::ids::{GroupId, LeaseId, PartitionId, QueueId};
use crate::messages::message::PartitionLease;

/// Error texts are kept with dead letters; longer ones are cut.
const ERROR_CHARS_MAX: usize = 4000;

/// What became of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Outcome {
    /// It is done, and with it everything before it.
    Completed,
    /// It is delivered again, at once and uncharged.
    Retry,
    /// It is delivered again after the queue's retry delay, and is charged: after the queue's retry
    /// limit it becomes a dead letter.
    Failed,
    /// It becomes a dead letter at once.
    Dead,
}

impl Outcome {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Retry => "retry",
            Self::Failed => "failed",
            Self::Dead => "dlq",
        }
    }
}

/// How far a consumer came in one partition of its lease, and what stopped it. Sequences are those
/// of [`Message::seq`](crate::messages::Message).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settlement {
    pub(super) cursor: CursorKey,
    /// `None` if the messages were acked by popping.
    pub(super) lease: Option<LeaseId>,
    pub(super) end: End,
    pub(super) strict: bool,
}

/// Names a cursor: a group in a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct CursorKey {
    pub(crate) partition: PartitionId,
    pub(crate) group: GroupId,
    pub(crate) queue: QueueId,
}

/// How far the consumer came, and what stopped it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum End {
    /// The whole lease, which ends with this sequence.
    Whole(i64),
    /// Completed up to this sequence; the rest stays leased.
    Through(i64),
    /// This sequence was not completed; everything before it was.
    At(i64, Outcome, Option<String>),
    /// As if it had never been claimed.
    Released,
}

impl Settlement {
    /// Every message of the lease is completed.
    pub fn complete(lease: &PartitionLease) -> Self {
        Self::new(lease, End::Whole(lease.through))
    }

    /// The messages up to and including `seq` are completed; the others stay leased.
    pub fn complete_through(lease: &PartitionLease, seq: i64) -> Self {
        let end = if seq == lease.through { End::Whole(seq) } else { End::Through(seq) };
        Self::new(lease, end)
    }

    /// The message `seq` failed. Those before it are completed; it and those after it are delivered
    /// again.
    pub fn fail(lease: &PartitionLease, seq: i64, error: impl Into<String>) -> Self {
        Self::new(lease, End::at(seq, Outcome::Failed, Some(error.into())))
    }

    /// The message `seq` and those after it are to be delivered again, uncharged; those before it
    /// are completed.
    pub fn retry(lease: &PartitionLease, seq: i64) -> Self {
        Self::new(lease, End::at(seq, Outcome::Retry, None))
    }

    /// The message `seq` becomes a dead letter. Those before it are completed; those after it are
    /// delivered again.
    pub fn dead(lease: &PartitionLease, seq: i64, error: impl Into<String>) -> Self {
        Self::new(lease, End::at(seq, Outcome::Dead, Some(error.into())))
    }

    /// No message was completed: another consumer may claim the partition at once, and nothing is
    /// charged.
    pub fn release(lease: &PartitionLease) -> Self {
        Self::new(lease, End::Released)
    }

    /// Refuse it if the lease has ended, even if no other consumer has claimed since. Without this,
    /// an ended lease may be settled until another consumer claims: the work is done, and need not
    /// be done again.
    #[must_use]
    pub fn strict(mut self) -> Self {
        self.strict = true;
        self
    }

    fn new(lease: &PartitionLease, end: End) -> Self {
        let cursor = CursorKey { partition: lease.partition_id, group: lease.group_id, queue: lease.queue_id };
        Self { cursor, lease: lease.lease, end, strict: false }
    }
}

impl End {
    pub(super) fn at(seq: i64, outcome: Outcome, error: Option<String>) -> Self {
        match outcome {
            Outcome::Completed => Self::Through(seq),
            Outcome::Retry | Outcome::Failed | Outcome::Dead => Self::At(seq, outcome, error.map(kept)),
        }
    }

    /// The last completed sequence. For an impossible sequence the result lies outside every lease,
    /// and the database refuses it.
    pub(super) fn through(&self) -> i64 {
        match self {
            Self::Whole(seq) | Self::Through(seq) => *seq,
            Self::At(seq, ..) => seq.saturating_sub(1),
            Self::Released => 0,
        }
    }

    /// Whether an earlier attempt, whose answer was lost, may have moved the cursor to `committed`,
    /// now that another consumer has claimed.
    pub(super) fn may_have_counted(&self, committed: Option<i64>) -> bool {
        match self {
            Self::Whole(seq) | Self::Through(seq) => committed.is_none_or(|committed| committed >= *seq),
            Self::At(..) => true,
            // It makes no difference to the caller whether its own release counted.
            Self::Released => false,
        }
    }

    pub(super) fn word(&self) -> &'static str {
        match self {
            Self::Whole(_) | Self::Through(_) => Outcome::Completed.word(),
            Self::At(_, outcome, _) => outcome.word(),
            Self::Released => "release",
        }
    }

    pub(super) fn error(&self) -> Option<&str> {
        match self {
            Self::At(_, _, error) => error.as_deref(),
            Self::Whole(_) | Self::Through(_) | Self::Released => None,
        }
    }
}

/// The part of an error text that PostgreSQL can hold: the text is for people, and must not keep a
/// failure from being recorded.
fn kept(error: String) -> String {
    let fits = error.len() <= ERROR_CHARS_MAX && !error.contains('\0');
    if fits {
        error
    } else {
        error.chars().take(ERROR_CHARS_MAX).map(|c| if c == '\0' { '\u{fffd}' } else { c }).collect()
    }
}

/// The answer to a settlement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Settled {
    /// It is recorded.
    Done {
        /// The lease ended with this settlement: the partition may be claimed again.
        released: bool,
        /// The message became a dead letter, or was dropped because its queue keeps none.
        dead: bool,
    },
    /// A repeat: it was recorded before, and had no effect now.
    Already,
    /// The message was reported as not completed, but it is settled already: too late.
    Passed,
    /// The message was reported as completed or dead, but a message before it was not completed in
    /// the same call: it is delivered again.
    Redelivered,
    /// Another consumer has claimed since, or the group was moved: nothing was recorded.
    LeaseLost,
    /// The lease has ended, and the settlement is strict: nothing was recorded.
    Expired,
    /// The sequence is not one of this lease.
    Outside,
    /// There is no such message, partition or group.
    NotFound,
    /// The queue accepts no ack without a lease.
    LeaseRequired,
}

impl Settled {
    /// Whether the settlement is recorded, by this call or by an earlier one.
    pub fn holds(self) -> bool {
        match self {
            Self::Done { .. } | Self::Already => true,
            Self::Passed
            | Self::Redelivered
            | Self::LeaseLost
            | Self::Expired
            | Self::Outside
            | Self::NotFound
            | Self::LeaseRequired => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_text_is_kept_as_far_as_postgresql_can_hold_it() {
        assert_eq!(kept("a\0b".to_owned()), "a\u{fffd}b");
        assert_eq!(kept("ä".repeat(5000)).chars().count(), ERROR_CHARS_MAX);
    }

    #[test]
    fn extreme_sequences_do_not_overflow() {
        assert_eq!(End::at(i64::MIN, Outcome::Failed, None).through(), i64::MIN);
        assert_eq!(End::at(i64::MAX, Outcome::Failed, None).through(), i64::MAX - 1);
    }
}
