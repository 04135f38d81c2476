//! Pushes and acks in one commit: all of them happen, or none.
//!
//! Owns the lock order: partition rows of the pushes before cursors of the acks, as everywhere.
//! Promises that a refused ack undoes the pushes, that a push whose transaction id was seen before
//! undoes the acks, and that an interrupted commit is resolved, not guessed.
//!
//! Next: `push/in_transaction.rs` and `settle/in_transaction.rs`, the two parts.

use super::Messages;
use super::error::MessagesError;
use super::ids::MessageId;
use super::push::{self, PushItem, Pushed};
use super::settle::{Acknowledgement, Settled, Settlement, Settlements};

/// How often a transaction is tried, if a queue is deleted meanwhile.
const ATTEMPTS: usize = 3;

/// Pushes and acks that are to happen together.
#[derive(Debug, Clone, Default)]
pub struct Changes {
    pushes: Vec<PushItem>,
    settlements: Vec<Settlement>,
    acknowledgements: Vec<Acknowledgement>,
}

impl Changes {
    /// Nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Also push this.
    #[must_use]
    pub fn push(mut self, item: PushItem) -> Self {
        self.pushes.push(item);
        self
    }

    /// Also settle this, under its lease.
    #[must_use]
    pub fn settle(mut self, settlement: Settlement) -> Self {
        self.settlements.push(settlement);
        self
    }

    /// Also settle this, by its transaction id.
    #[must_use]
    pub fn acknowledge(mut self, acknowledgement: Acknowledgement) -> Self {
        self.acknowledgements.push(acknowledgement);
        self
    }
}

/// How a transaction ended.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum TransactionOutcome {
    /// Everything happened.
    Committed {
        /// For each push, in order.
        pushed: Vec<Pushed>,
        /// For each settlement, in order, then for each acknowledgement.
        settled: Vec<Settled>,
    },
    /// Nothing happened: a push was stored before.
    Duplicate {
        /// Which push, counted from 0.
        push: usize,
        /// The message that came first.
        of: MessageId,
    },
    /// Nothing happened: an ack was refused, or was recorded before.
    Refused {
        /// Which one, counted from 0: first the settlements, then the acknowledgements.
        ack: usize,
        /// Why.
        why: Settled,
    },
}

impl Messages {
    /// Push and settle in one commit, or do neither. An error means that nothing happened, unless
    /// it says that the outcome is unknown. Then the same transaction may be tried again if it has
    /// an ack, or if every push has its own transaction id: if it was committed before, it is
    /// refused.
    pub async fn transaction(&self, changes: Changes) -> Result<TransactionOutcome, MessagesError> {
        let context = &self.parts.context;
        let Changes { pushes, settlements, acknowledgements } = changes;
        let found = Settlements::find(context, &self.parts.settler, settlements, acknowledgements).await?;
        let mut settlements = match found {
            Ok(settlements) => settlements,
            Err((ack, why)) => return Ok(TransactionOutcome::Refused { ack, why }),
        };
        let mut connection = context.database.acquire().await?;
        for _ in 0..ATTEMPTS {
            let mut prepared = push::prepare(context, &connection, pushes.clone()).await?;
            let mut transaction = connection.transaction().await?;
            if !prepared.append(&transaction).await? {
                transaction.rollback().await?;
                prepared.forget_partitions(context);
                continue;
            }
            if let Some((push, of)) = prepared.first_duplicate() {
                transaction.rollback().await?;
                return Ok(TransactionOutcome::Duplicate { push, of });
            }
            let settled = match settlements.settle(&transaction).await? {
                Ok(settled) => settled,
                Err((ack, why)) => {
                    transaction.rollback().await?;
                    return Ok(TransactionOutcome::Refused { ack, why });
                }
            };
            transaction.identify().await?;
            transaction.commit_known().await?;
            settlements.committed(context);
            let pushed = prepared.committed(context).into_iter().collect::<Result<_, _>>()?;
            return Ok(TransactionOutcome::Committed { pushed, settled });
        }
        Err(MessagesError::Overloaded("a queue is deleted again and again while a transaction pushes to it".to_owned()))
    }
}
