//! Pushes and acks that happen together or not at all: consume, produce, and neither is ever done
//! twice.
//!
//! Owns the order: the heads of what is pushed are taken before the cursors of what is acked, as
//! everywhere. Promises that an ack which does not hold undoes the pushes, that a push whose
//! transaction id was seen before undoes the acks, and that an interrupted commit is resolved
//! rather than guessed.

use super::Messages;
use super::error::MessagesError;
use super::ids::MessageId;
use super::push::{self, PushItem, Pushed};
use super::settle::{Acknowledgement, Settled, Settlement, Settlements};

/// How often a transaction begins anew because a queue was deleted under it.
const ATTEMPTS: usize = 3;

/// What is to happen together.
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
    /// Nothing happened: an ack does not hold, or was made before.
    Refused {
        /// Which one, counted from 0: first the settlements, then the acknowledgements.
        ack: usize,
        /// Why.
        why: Settled,
    },
}

impl Messages {
    /// Push and settle in one commit, or do neither. An error means that nothing happened, unless
    /// it says that the outcome is not known; then the same may be tried again if every push has a
    /// transaction id of its own, or an ack is among it: what was done before is refused as such.
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
                prepared.unplace(context);
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
