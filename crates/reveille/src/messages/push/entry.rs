//! One item on its way through a flush.

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
    /// Its place in the flush.
    pub(super) number: usize,
    /// The key of its transaction id, if it has one.
    pub(super) key: Option<Uuid>,
    /// The same, if its queue remembers transaction ids. The flush finds it, and what follows.
    pub(super) guard: Option<Uuid>,
    /// Where it goes.
    pub(super) place: Option<Arc<PartitionEntry>>,
    /// Its payload, if its queue wants it sealed.
    pub(super) sealed: Option<Vec<u8>>,
    /// It was sent, and the answer may have been lost: it may be in the log.
    pub(super) doubtful: bool,
    pub(super) verdict: Option<Verdict>,
}

impl Entry {
    /// An item that PostgreSQL can hold.
    pub(in crate::messages) fn checked(item: PushItem, payload_bytes_max: usize) -> Result<Self, MessagesError> {
        let bytes = item.payload.len();
        if bytes > payload_bytes_max {
            return Err(MessagesError::PayloadTooLarge { bytes, limit: payload_bytes_max });
        }
        check_word("the transaction id", item.transaction_id.as_deref())?;
        check_word("the producer", item.producer.as_deref())?;
        let key = item.transaction_id.as_deref().map(dedup_key);
        Ok(Self {
            item,
            id: MessageId::new(),
            number: 0,
            key,
            guard: None,
            place: None,
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

    /// The payload as the log keeps it.
    pub(super) fn stored_payload(&self) -> &[u8] {
        self.sealed.as_deref().unwrap_or_else(|| self.item.payload.as_bytes())
    }

    pub(super) fn weight(&self) -> usize {
        self.item.payload.len() + OVERHEAD
    }

    /// Its flush failed: perhaps it was stored.
    pub(super) fn doubt(&mut self) {
        self.doubtful = true;
        self.verdict = None;
    }

    pub(super) fn answer(self) -> Result<Pushed, MessagesError> {
        let (id, outcome) = match self.verdict {
            Some(Verdict::Stored(seq)) => (self.id, PushOutcome::Stored { seq }),
            Some(Verdict::Duplicate(of)) => (of, PushOutcome::Duplicate { of }),
            Some(Verdict::Buffered) => (self.id, PushOutcome::Buffered),
            Some(Verdict::Refused(refused)) => return Err(refused),
            // Whenever the flush made the queue, somebody deleted it.
            Some(Verdict::Twin(_)) | None => return Err(MessagesError::NoQueue { queue: self.item.queue.to_string() }),
        };
        let known = self.place.filter(|_| outcome != PushOutcome::Buffered);
        Ok(Pushed { id, named: self.item.transaction_id, partition_uid: known.map(|place| place.uid), outcome })
    }
}

/// What became of an entry.
#[derive(Debug)]
pub(in crate::messages) enum Verdict {
    Stored(i64),
    Duplicate(MessageId),
    /// The same transaction id as the entry of the flush that has this number, and comes before it.
    Twin(usize),
    Buffered,
    Refused(MessagesError),
}

impl Verdict {
    pub(super) fn is_refusal(&self) -> bool {
        matches!(self, Self::Refused(_))
    }
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
