//! One item of a push, from the call to the answer.
//!
//! Owns what the flush finds out about the item: its partition, its sealed payload, its verdict.
//!
//! Next: [`super::plan`], which finds the partition.

use std::sync::Arc;

use uuid::Uuid;

use super::item::{PushItem, PushOutcome, Pushed};
use super::key::dedup_key;
use crate::messages::catalog::{PartitionEntry, PartitionPath};
use crate::messages::error::MessagesError;
use crate::messages::ids::MessageId;

/// Traces are indexed by transaction id, and an index entry has its limit.
const WORD_BYTES_MAX: usize = 1024;
/// What an item takes besides its payload, roughly.
const OVERHEAD: usize = 128;

pub(in crate::messages) struct Entry {
    pub(in crate::messages) item: PushItem,
    pub(in crate::messages) id: MessageId,
    /// Its position in the flush. The flush sets this and the fields below, except the dedup key.
    pub(super) number: usize,
    /// The key of its transaction id, if it has one.
    pub(super) dedup_key: Option<Uuid>,
    /// The dedup key, if its queue checks transaction ids.
    pub(super) checked_key: Option<Uuid>,
    /// The partition it is stored in.
    pub(super) partition: Option<Arc<PartitionEntry>>,
    /// Its encrypted payload, if its queue is encrypted.
    pub(super) sealed: Option<Vec<u8>>,
    /// An attempt to store it failed: it may be in the log all the same.
    pub(super) doubtful: bool,
    pub(super) verdict: Option<Verdict>,
}

impl Entry {
    /// Refuses an item that PostgreSQL cannot hold.
    pub(in crate::messages) fn checked(item: PushItem, payload_bytes_max: usize) -> Result<Self, MessagesError> {
        let bytes = item.payload.len();
        if bytes > payload_bytes_max {
            return Err(MessagesError::PayloadTooLarge { bytes, limit: payload_bytes_max });
        }
        check_word("the transaction id", item.transaction_id.as_deref())?;
        check_word("the producer", item.producer.as_deref())?;
        let dedup_key = item.transaction_id.as_deref().map(dedup_key);
        Ok(Self {
            item,
            id: MessageId::new(),
            number: 0,
            dedup_key,
            checked_key: None,
            partition: None,
            sealed: None,
            doubtful: false,
            verdict: None,
        })
    }

    /// The names of the partition it is for.
    pub(super) fn path(&self) -> PartitionPath {
        PartitionPath { queue: self.item.queue.clone(), partition: self.item.partition.clone() }
    }

    pub(super) fn is_for_the_same(&self, other: &Self) -> bool {
        self.item.partition == other.item.partition && self.item.queue == other.item.queue
    }

    /// Whether the answer is known, so that nothing is left to store.
    pub(super) fn is_decided(&self) -> bool {
        self.verdict.is_some()
    }

    pub(super) fn refuse(&mut self, error: MessagesError) {
        self.verdict = Some(Verdict::Refused(error));
    }

    /// The payload as the log keeps it.
    pub(super) fn stored_payload(&self) -> &[u8] {
        self.sealed.as_deref().unwrap_or_else(|| self.item.payload.as_bytes())
    }

    pub(super) fn weight(&self) -> usize {
        self.item.payload.len() + OVERHEAD
    }

    /// Its flush failed, whether the statement was refused, was not sent, or its answer was lost.
    pub(super) fn doubt(&mut self) {
        self.doubtful = true;
        self.verdict = None;
    }

    /// What an entry with the same transaction id, behind this one in the flush, gets: it is a
    /// duplicate, or is refused as this one was.
    pub(super) fn verdict_of_repeat(&self) -> Option<Verdict> {
        match &self.verdict {
            Some(Verdict::Refused(refused)) => Some(Verdict::Refused(refused.clone())),
            Some(Verdict::Duplicate(of)) => Some(Verdict::Duplicate(*of)),
            Some(Verdict::Stored(_) | Verdict::Buffered | Verdict::Repeats(_)) => Some(Verdict::Duplicate(self.id)),
            None => None,
        }
    }

    pub(super) fn answer(self) -> Result<Pushed, MessagesError> {
        let (id, outcome) = match self.verdict {
            Some(Verdict::Stored(seq)) => (self.id, PushOutcome::Stored { seq }),
            Some(Verdict::Duplicate(of)) => (of, PushOutcome::Duplicate { of }),
            Some(Verdict::Buffered) => (self.id, PushOutcome::Buffered),
            Some(Verdict::Refused(refused)) => return Err(refused),
            // Its queue was deleted and re-created in every round, or that of the entry it repeats.
            Some(Verdict::Repeats(_)) | None => {
                return Err(MessagesError::NoQueue { queue: self.item.queue.to_string() });
            }
        };
        let known = self.partition.filter(|_| outcome != PushOutcome::Buffered);
        Ok(Pushed { id, named: self.item.transaction_id, partition_uid: known.map(|partition| partition.uid), outcome })
    }
}

/// The result of an entry.
#[derive(Debug)]
pub(in crate::messages) enum Verdict {
    /// Its sequence.
    Stored(i64),
    /// Of this message.
    Duplicate(MessageId),
    /// It has the transaction id of an earlier entry of the flush, whose number this is. Its answer
    /// follows from that entry's.
    Repeats(usize),
    /// It is in the outbox, because pushes are paused.
    Buffered,
    Refused(MessagesError),
}

fn check_word(what: &'static str, word: Option<&str>) -> Result<(), MessagesError> {
    match word {
        Some(word) if word.contains('\0') => Err(MessagesError::Nul { what }),
        Some(word) if word.len() > WORD_BYTES_MAX => {
            let given = format!("{} bytes long", word.len());
            Err(MessagesError::OutOfRange { what, allowed: "at most 1024 bytes long", given })
        }
        _ => Ok(()),
    }
}
