//! Which demands must make a claim attempt of their own, under the broadcast policy.
//!
//! Owns the order of the attempts: first woken, first to try. A demand is here at most once, and
//! leaves when it is answered or gone, so there are never more entries than demands. A demand that
//! is woken again after its attempt goes to the end: a key that is woken all the time keeps no
//! other key from being claimed from.
//!
//! Next: [`crate::dispatcher`].

use std::collections::{BTreeMap, HashMap};

use crate::cause::Cause;
use crate::demand::DemandId;

#[derive(Debug, Default)]
pub(super) struct Attempts {
    numbers: u64,
    order: BTreeMap<u64, (DemandId, Cause)>,
    places: HashMap<DemandId, u64>,
}

impl Attempts {
    /// The demand was woken. If it is here already, it keeps its place.
    pub(super) fn owe(&mut self, id: DemandId, cause: Cause) {
        self.places.entry(id).or_insert_with(|| {
            self.numbers += 1;
            self.order.insert(self.numbers, (id, cause));
            self.numbers
        });
    }

    /// The demand whose turn it is, and the cause of its wake.
    pub(super) fn next(&mut self) -> Option<(DemandId, Cause)> {
        let (_, (id, cause)) = self.order.pop_first()?;
        self.places.remove(&id);
        Some((id, cause))
    }

    pub(super) fn remove(&mut self, id: DemandId) {
        if let Some(place) = self.places.remove(&id) {
            self.order.remove(&place);
        }
    }
}
