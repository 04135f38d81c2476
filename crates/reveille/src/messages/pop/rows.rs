//! Makes leases and messages of the rows that a claim returns.
//!
//! Owns the columns of the two statements that claim. The payloads of a row are copied once,
//! together; the payload of a message is a part of that copy.

use std::error::Error;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use tokio_postgres::Row;
use tokio_postgres::types::{FromSql, Type};
use uuid::Uuid;

use super::give_back::Acked;
use crate::messages::catalog::PartitionEntry;
use crate::messages::error::MessagesError;
use crate::messages::ids::{GroupId, LeaseId, MessageId, PartitionId};
use crate::messages::message::{Message, PartitionLease};
use crate::messages::payload::Payload;
use crate::messages::seal::Seal;

/// The columns of the two statements that claim. By number: finding one by its name compares text
/// with each column before it.
mod column {
    pub(super) const CLAIM: usize = 0;
    pub(super) const GROUP: usize = 1;
    pub(super) const PARTITION: usize = 2;
    pub(super) const START: usize = 3;
    pub(super) const THROUGH: usize = 4;
    pub(super) const DELIVERIES: usize = 5;
    pub(super) const LEASE_S: usize = 6;
    pub(super) const MORE: usize = 7;
    pub(super) const LEASED: usize = 8;
    pub(super) const FIRST: usize = 9;
    pub(super) const AT: usize = 10;
    pub(super) const KEY_ID: usize = 11;
    pub(super) const GONE: usize = 12;
    pub(super) const IDS: usize = 13;
    pub(super) const TRANSACTION_IDS: usize = 14;
    pub(super) const PAYLOADS: usize = 15;
    pub(super) const TRACE_IDS: usize = 16;
    pub(super) const PRODUCERS: usize = 17;
}

/// One row of `messages/pop/claim.sql` or `messages/pop/claim_plain.sql`: a partition, and a part
/// of its messages.
#[derive(Clone, Copy)]
pub(super) struct ClaimRow<'r>(pub(super) &'r Row);

impl ClaimRow<'_> {
    /// The number of the claim that the row is for.
    pub(super) fn claim(self) -> usize {
        usize::try_from(self.0.get::<_, i32>(column::CLAIM)).unwrap_or(usize::MAX)
    }

    pub(super) fn group(self) -> GroupId {
        GroupId(self.0.get(column::GROUP))
    }

    pub(super) fn partition(self) -> PartitionId {
        PartitionId(self.0.get(column::PARTITION))
    }

    /// More is ready in the partition than was leased.
    pub(super) fn has_more(self) -> bool {
        self.0.get(column::MORE)
    }

    /// If not, the cursor only moved past messages that no consumer gets.
    pub(super) fn is_leased(self) -> bool {
        self.0.get(column::LEASED)
    }

    /// What the claim acked of the partition, if it acks by popping.
    pub(super) fn acked(self, claim: LeaseId) -> Acked {
        let (start, through) = (self.0.get(column::START), self.0.get(column::THROUGH));
        Acked { claim, group: self.group(), partition: self.partition(), start, through }
    }

    /// Adds this row to the leases of its claim: rows of a partition come one after the other.
    pub(super) fn add_to(
        self,
        leases: &mut Vec<PartitionLease>,
        entry: &PartitionEntry,
        lease: Option<LeaseId>,
        seal: &Seal,
    ) -> Result<(), MessagesError> {
        if leases.last().is_none_or(|last| last.partition_id != entry.id || last.group_id != self.group()) {
            leases.push(self.lease(entry, lease));
        }
        leases.last_mut().map_or(Ok(()), |last| self.read_into(&mut last.messages, seal))
    }

    /// The lease on the partition, without its messages.
    fn lease(self, entry: &PartitionEntry, lease: Option<LeaseId>) -> PartitionLease {
        let seconds: Option<f64> = self.0.get(column::LEASE_S);
        PartitionLease {
            queue: entry.queue_name.clone(),
            partition: entry.name.clone(),
            partition_uid: entry.uid,
            messages: Vec::new(),
            deliveries: self.0.get(column::DELIVERIES),
            lease_time: seconds.and_then(|s| Duration::try_from_secs_f64(s).ok()).unwrap_or_default(),
            lease,
            queue_id: entry.queue,
            partition_id: self.partition(),
            group_id: self.group(),
            start: self.0.get(column::START),
            through: self.0.get(column::THROUGH),
        }
    }

    /// Adds the messages of this row, without those that were deleted.
    fn read_into(self, messages: &mut Vec<Message>, seal: &Seal) -> Result<(), MessagesError> {
        let row = self.0;
        let Some(first) = row.get::<_, Option<i64>>(column::FIRST) else { return Ok(()) };
        let created_at: SystemTime = row.get(column::AT);
        let key_id: Option<i32> = row.get(column::KEY_ID);
        let gone: Option<Vec<i64>> = row.get(column::GONE);
        let ids: Vec<Uuid> = row.get(column::IDS);
        let mut transaction_ids = Column::of(row.get::<_, Option<Vec<Option<String>>>>(column::TRANSACTION_IDS));
        let Parts(payloads) = row.get(column::PAYLOADS);
        let mut trace_ids = Column::of(row.get::<_, Option<Vec<Option<Uuid>>>>(column::TRACE_IDS));
        let mut producers = Column::of(row.get::<_, Option<Vec<Option<String>>>>(column::PRODUCERS));
        messages.reserve(ids.len());
        for ((seq, id), payload) in (first..).zip(ids).zip(payloads) {
            let (transaction_id, trace_id, producer) = (transaction_ids.next(), trace_ids.next(), producers.next());
            if gone.as_ref().is_some_and(|gone| gone.contains(&seq)) {
                continue;
            }
            let id = MessageId(id);
            let payload = match key_id {
                Some(key_id) => seal.open(Some(key_id), id, payload.into())?,
                None => Payload::new(payload),
            };
            let transaction_id = transaction_id.unwrap_or_else(|| id.to_string());
            messages.push(Message { id, transaction_id, trace_id, producer, payload, created_at, seq });
        }
        Ok(())
    }
}

/// An array that may be missing, which is the same as one of nulls.
struct Column<T>(Option<std::vec::IntoIter<Option<T>>>);

impl<T> Column<T> {
    fn of(values: Option<Vec<Option<T>>>) -> Self {
        Self(values.map(IntoIterator::into_iter))
    }

    fn next(&mut self) -> Option<T> {
        self.0.as_mut()?.next().flatten()
    }
}

/// The elements of a `bytea[]`, as parts of one copy.
struct Parts(Vec<Bytes>);

impl<'a> FromSql<'a> for Parts {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        let mut whole = Bytes::copy_from_slice(raw);
        let dimensions = number(&mut whole)?;
        let _has_nulls = number(&mut whole)?;
        let _element = number(&mut whole)?;
        if dimensions == 0 {
            return Ok(Self(Vec::new()));
        }
        let length = usize::try_from(number(&mut whole)?)?;
        let _first = number(&mut whole)?;
        let mut parts = Vec::with_capacity(length.min(whole.len()));
        for _ in 0..length {
            // An erased payload is null.
            let size = usize::try_from(number(&mut whole)?).unwrap_or(0);
            if whole.len() < size {
                return Err("an array ends in the middle of an element".into());
            }
            parts.push(whole.split_to(size));
        }
        Ok(Self(parts))
    }

    fn accepts(of: &Type) -> bool {
        *of == Type::BYTEA_ARRAY
    }
}

fn number(from: &mut Bytes) -> Result<i32, Box<dyn Error + Sync + Send>> {
    let (bytes, _) = from.split_first_chunk::<4>().ok_or("an array ends in the middle of a number")?;
    let number = i32::from_be_bytes(*bytes);
    let _ = from.split_to(4);
    Ok(number)
}
