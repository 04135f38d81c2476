//! What operators do to a queue as a whole, and to its groups.

use reveille::messages::LeaseId;

use super::{GONE, Model, Place};

impl Model {
    /// Nobody gets what was pushed so far. Says how much that was.
    pub(crate) fn purge(&mut self) -> i64 {
        let mut purged = i64::try_from(self.outbox.len()).expect("a short history");
        self.outbox.clear();
        for log in self.logs.values_mut() {
            purged += log.newest() - log.purged;
            log.purged = log.newest();
        }
        purged
    }

    /// The group goes back to where it began, in one partition.
    pub(crate) fn begin_again(&mut self, place: Place, nonce: Option<LeaseId>) {
        let began = self.began.get(&place).copied().unwrap_or_default();
        self.seek(place, began, nonce);
    }

    /// As if the group had never been. What is its alone stays behind, and is for nobody.
    pub(crate) fn forget_group(&mut self, group: u8) {
        self.groups.retain(|known| *known != group);
        self.began.retain(|place, _| place.1 != group);
        self.cursors.retain(|place, _| place.1 != group);
        self.logs.values_mut().for_each(|log| log.forget_group(group));
        for letter in self.letters.iter_mut().filter(|letter| letter.place.1 == group) {
            letter.place.1 = GONE;
        }
    }

    /// Everything is gone with the queue, also what was on its way to it.
    pub(crate) fn delete_queue(&mut self) {
        *self = Self { present: false, ..Self::new(self.rules) };
    }
}
