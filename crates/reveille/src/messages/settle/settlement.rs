//! What a consumer says about its lease, and what it is told.

use crate::messages::ids::{GroupId, LeaseId, PartitionId, QueueId};
use crate::messages::message::PartitionLease;

/// Error texts are kept with dead letters; longer ones are cut.
const ERROR_CHARS_MAX: usize = 4000;

/// What became of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Outcome {
    /// It is done, and with it everything before it.
    Completed,
    /// It comes again, at once and uncharged.
    Retry,
    /// It comes again after the queue's retry delay, and is charged: after the queue's retry limit
    /// it goes to the dead letters.
    Failed,
    /// It goes straight to the dead letters.
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

/// What a consumer says about one partition of its lease. Sequences are those of
/// [`Message::seq`](crate::messages::Message).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settlement {
    pub(super) place: Place,
    /// `None` when the messages were acked by having been popped.
    pub(super) lease: Option<LeaseId>,
    pub(super) end: End,
    pub(super) strict: bool,
}

/// A cursor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Place {
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
    /// Every message of the lease is done.
    pub fn complete(lease: &PartitionLease) -> Self {
        Self::new(lease, End::Whole(lease.through))
    }

    /// The messages up to and including `seq` are done; the rest stays leased.
    pub fn complete_through(lease: &PartitionLease, seq: i64) -> Self {
        let end = if seq == lease.through { End::Whole(seq) } else { End::Through(seq) };
        Self::new(lease, end)
    }

    /// The message `seq` failed; those before it are done, it and those after it come again.
    pub fn fail(lease: &PartitionLease, seq: i64, error: impl Into<String>) -> Self {
        Self::new(lease, End::at(seq, Outcome::Failed, Some(error.into())))
    }

    /// The message `seq` shall come again, uncharged; those before it are done.
    pub fn retry(lease: &PartitionLease, seq: i64) -> Self {
        Self::new(lease, End::at(seq, Outcome::Retry, None))
    }

    /// The message `seq` goes to the dead letters; those before it are done, those after it come
    /// again.
    pub fn dead(lease: &PartitionLease, seq: i64, error: impl Into<String>) -> Self {
        Self::new(lease, End::at(seq, Outcome::Dead, Some(error.into())))
    }

    /// Nothing was done: another consumer may have it at once, and nothing is charged.
    pub fn release(lease: &PartitionLease) -> Self {
        Self::new(lease, End::Released)
    }

    /// Refuse it when the lease has ended, even if nobody else has claimed since. Without this, an
    /// ended lease may be settled until somebody else has it: the work was done, and doing it again
    /// helps nobody.
    #[must_use]
    pub fn strict(mut self) -> Self {
        self.strict = true;
        self
    }

    fn new(lease: &PartitionLease, end: End) -> Self {
        let place = Place { partition: lease.partition_id, group: lease.group_id, queue: lease.queue_id };
        Self { place, lease: lease.lease, end, strict: false }
    }
}

impl End {
    pub(super) fn at(seq: i64, outcome: Outcome, error: Option<String>) -> Self {
        match outcome {
            Outcome::Completed => Self::Through(seq),
            Outcome::Retry | Outcome::Failed | Outcome::Dead => Self::At(seq, outcome, error.map(kept)),
        }
    }

    /// The last completed sequence. What no sequence precedes is outside every lease, and found to
    /// be so.
    pub(super) fn through(&self) -> i64 {
        match self {
            Self::Whole(seq) | Self::Through(seq) => *seq,
            Self::At(seq, ..) => seq.saturating_sub(1),
            Self::Released => 0,
        }
    }

    /// Whether an attempt of which nobody heard may have moved the cursor to `committed`, now that
    /// another holds the place.
    pub(super) fn may_have_counted(&self, committed: Option<i64>) -> bool {
        match self {
            Self::Whole(seq) | Self::Through(seq) => committed.is_none_or(|committed| committed >= *seq),
            Self::At(..) => true,
            // Whoever gives something back does not ask what became of it.
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

/// An error text is for people: one that PostgreSQL cannot hold must not keep a failure from being
/// recorded.
fn kept(error: String) -> String {
    let fits = error.len() <= ERROR_CHARS_MAX && !error.contains('\0');
    if fits {
        error
    } else {
        error.chars().take(ERROR_CHARS_MAX).map(|c| if c == '\0' { '\u{fffd}' } else { c }).collect()
    }
}

/// What became of a settlement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Settled {
    /// It is recorded.
    Done {
        /// The partition may be claimed again: the lease ended with this.
        released: bool,
        /// The message went to the dead letters, or was dropped because its queue keeps none.
        dead: bool,
    },
    /// It was recorded before, or had no effect left to have: a repeat.
    Already,
    /// Said not to be completed, but it is settled by now: too late.
    Passed,
    /// Said to be completed, or dead, but a message before it was not completed in the same call:
    /// it comes again.
    Redelivered,
    /// Somebody else has claimed since, or the group was moved: nothing was recorded.
    LeaseLost,
    /// The lease has ended, and the caller wanted that to count: nothing was recorded.
    Expired,
    /// The sequence is not one of this lease.
    Outside,
    /// There is no such message, partition or group.
    NotFound,
    /// The queue accepts no ack without a lease.
    LeaseRequired,
}

impl Settled {
    /// Whether what was said holds, now or since before.
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
    fn an_error_text_is_always_kept_somehow() {
        assert_eq!(kept("a\0b".to_owned()), "a\u{fffd}b");
        assert_eq!(kept("ä".repeat(5000)).chars().count(), ERROR_CHARS_MAX);
    }

    #[test]
    fn extreme_sequences_do_not_overflow() {
        assert_eq!(End::at(i64::MIN, Outcome::Failed, None).through(), i64::MIN);
        assert_eq!(End::at(i64::MAX, Outcome::Failed, None).through(), i64::MAX - 1);
    }
}
