//! Settlements as the parameters of statements: one array for each column.
//!
//! Next: `sql/messages/settle/complete.sql`, `sql/functions/settle.sql`.

use std::collections::HashSet;

use uuid::Uuid;

use super::SettleRequest;
use crate::database::Param;
use crate::messages::ids::LeaseId;
use crate::messages::settle::settlement::{End, Settlement};

/// Whole leases, as the parameters of their statement.
#[derive(Debug, Default)]
pub(super) struct WholeLeases {
    /// Where in the batch each is.
    pub(super) positions: Vec<usize>,
    partitions: Vec<i32>,
    groups: Vec<i32>,
    nonces: Vec<Uuid>,
    throughs: Vec<i64>,
    strict: Vec<bool>,
}

impl WholeLeases {
    /// The whole leases among these, one for each cursor.
    pub(super) fn of<'r>(requests: impl Iterator<Item = (usize, &'r SettleRequest)>) -> Self {
        let (mut whole, mut seen) = (Self::default(), HashSet::new());
        for (position, SettleRequest { settlement, lease, .. }) in requests {
            let End::Whole(through) = settlement.end else { continue };
            if seen.insert(settlement.cursor) {
                whole.positions.push(position);
                whole.partitions.push(settlement.cursor.partition.0);
                whole.groups.push(settlement.cursor.group.0);
                whole.nonces.push(lease.0);
                whole.throughs.push(through);
                whole.strict.push(settlement.strict);
            }
        }
        whole
    }

    pub(super) fn params(&self) -> [Param<'_>; 5] {
        [&self.partitions, &self.groups, &self.nonces, &self.throughs, &self.strict]
    }
}

/// Settlements of any kind, as the parameters of their statements.
#[derive(Debug, Default)]
pub(in crate::messages::settle) struct Arrays<'s> {
    partitions: Vec<i32>,
    groups: Vec<i32>,
    nonces: Vec<Uuid>,
    throughs: Vec<i64>,
    outcomes: Vec<&'static str>,
    errors: Vec<Option<&'s str>>,
    strict: Vec<bool>,
}

impl<'s> Arrays<'s> {
    pub(in crate::messages::settle) fn of(settlements: impl Iterator<Item = (&'s Settlement, LeaseId)>) -> Self {
        let mut arrays = Self::default();
        for (settlement, lease) in settlements {
            arrays.partitions.push(settlement.cursor.partition.0);
            arrays.groups.push(settlement.cursor.group.0);
            arrays.nonces.push(lease.0);
            arrays.throughs.push(settlement.end.through());
            arrays.outcomes.push(settlement.end.word());
            arrays.errors.push(settlement.end.error());
            arrays.strict.push(settlement.strict);
        }
        arrays
    }

    pub(super) fn is_empty(&self) -> bool {
        self.partitions.is_empty()
    }

    pub(in crate::messages::settle) fn params(&self) -> [Param<'_>; 7] {
        let Self { partitions, groups, nonces, throughs, outcomes, errors, strict } = self;
        [partitions, groups, nonces, throughs, outcomes, errors, strict]
    }
}
