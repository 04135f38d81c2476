//! Settles as part of a transaction that also pushes: all settlements hold, or none.
//!
//! Next: [`crate::messages::transaction`], which opens and commits the transaction.

use tokio_postgres::Row;

use super::acknowledge::{Acknowledgement, Bundle, Bundles, bundle_by_lease};
use super::settlement::{Settled, Settlement};
use super::work::{Arrays, announce_freed, item_of, verdict};
use super::{Settler, auto_acked};
use crate::database::{DatabaseError, Transaction};
use crate::messages::context::MessagesContext;
use crate::messages::error::MessagesError;
use crate::messages::statements::SETTLE_IN;

/// All settlements of a transaction, with the positions of their messages.
#[derive(Debug)]
pub(in crate::messages) struct Settlements {
    own: Vec<Settlement>,
    bundles: Vec<Bundle>,
    acknowledgements: usize,
    rows: Vec<Row>,
}

/// Which one is refused, and why. Counted from 0: first the settlements, then the acknowledgements.
pub(in crate::messages) type Refused = (usize, Settled);

impl Settlements {
    /// Finds the messages. No cursor is touched yet.
    pub(in crate::messages) async fn find(
        context: &MessagesContext,
        settler: &Settler,
        settlements: Vec<Settlement>,
        acknowledgements: Vec<Acknowledgement>,
    ) -> Result<Result<Self, Refused>, MessagesError> {
        let auto = settlements.iter().position(|settlement| settlement.lease.is_none());
        if let Some(at) = auto {
            return Ok(Err((at, auto_acked(&settlements[at].end).settled)));
        }
        let count = acknowledgements.len();
        let Bundles { by_lease, refused } = bundle_by_lease(context, settler, acknowledgements).await?;
        let first = refused.into_iter().min_by_key(|(at, _)| *at);
        Ok(match first {
            Some((at, settled)) => Err((settlements.len() + at, settled)),
            None => {
                let bundles = by_lease.into_values().collect();
                Ok(Self { own: settlements, bundles, acknowledgements: count, rows: Vec::new() })
            }
        })
    }

    /// Settles in a transaction, after its pushes. Returns the answers in order, or the first that
    /// is refused: then the caller rolls back. A repeat is refused as well, because the pushes of
    /// its transaction were committed with it before.
    pub(in crate::messages) async fn settle(
        &mut self,
        transaction: &Transaction<'_>,
    ) -> Result<Result<Vec<Settled>, Refused>, DatabaseError> {
        let all = self.all();
        if all.is_empty() {
            return Ok(Ok(Vec::new()));
        }
        let fenced = all.iter().filter_map(|settlement| Some((settlement, settlement.lease?)));
        self.rows = transaction.query(&SETTLE_IN, &Arrays::of(fenced).params()).await?;
        let own = self.own.len();
        let mut answers: Vec<Option<Settled>> = vec![None; own + self.acknowledgements];
        for row in &self.rows {
            let (item, verdict) = (item_of(row), verdict(row));
            match item.checked_sub(own).and_then(|bundle| self.bundles.get_mut(bundle)) {
                Some(bundle) => {
                    bundle.judge(verdict).into_iter().for_each(|(at, settled)| answers[own + at] = Some(settled));
                }
                None => answers[item] = Some(verdict.settled),
            }
        }
        let refused = |answer: &Option<Settled>| answer.is_some_and(|settled| !matches!(settled, Settled::Done { .. }));
        // Acknowledgements that share a lease with one that is too late have no answer: they are
        // not the reason.
        let why = answers.iter().position(refused).or_else(|| answers.iter().position(Option::is_none));
        Ok(match why {
            Some(at) => Err((at, answers[at].unwrap_or(Settled::LeaseLost))),
            None => Ok(answers.into_iter().flatten().collect()),
        })
    }

    /// The transaction was committed: wakes the groups of partitions that became claimable.
    pub(in crate::messages) fn committed(&self, context: &MessagesContext) {
        let cursors: Vec<_> = self.all().iter().map(|settlement| settlement.cursor).collect();
        for row in &self.rows {
            if let Some(cursor) = cursors.get(item_of(row)) {
                announce_freed(context, row, *cursor);
            }
        }
    }

    fn all(&self) -> Vec<Settlement> {
        self.own.iter().cloned().chain(self.bundles.iter().map(Bundle::settlement)).collect()
    }
}
