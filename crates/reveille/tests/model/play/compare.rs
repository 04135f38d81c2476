//! After every step: is what the tables say what the model says?

use super::{Play, agree};
use crate::model::{Check, Cursor, Letter, Place};
use crate::snapshot::{Due, Row};

impl Play<'_> {
    pub(super) fn compare(&mut self) -> Check {
        let newest: Vec<(u8, i64)> =
            self.now.partition_rows.iter().map(|(partition, (newest, _))| (*partition, *newest)).collect();
        let logged: Vec<(u8, i64)> =
            self.model.logs.iter().map(|(partition, log)| (*partition, log.newest())).collect();
        agree("the newest sequences", &newest, &logged)?;
        self.compare_letters()?;
        if let Some((place, row)) = self.now.rows.iter().find(|(place, _)| !self.model.groups.contains(&place.1)) {
            return Err(format!("{place:?} has a cursor, and its group is not there: {row:?}"));
        }
        for group in &self.model.groups {
            for partition in self.model.logs.keys() {
                self.compare_cursor((*partition, *group))?;
            }
        }
        Ok(())
    }

    /// Those of one place come in order; what one step did in several places may come in any.
    fn compare_letters(&mut self) -> Check {
        let actual: Vec<Letter> = self.now.letters.iter().map(|(_, letter)| letter.clone()).collect();
        let by_place = |letters: &[Letter]| {
            let mut letters = letters.to_vec();
            letters.sort_by_key(|letter| letter.place);
            letters
        };
        agree("the dead letters", &by_place(&actual), &by_place(&self.model.letters))?;
        self.model.letters = actual;
        Ok(())
    }

    fn compare_cursor(&self, place: Place) -> Check {
        let cursor = self.model.cursor(place);
        let row = self.now.rows.get(&place).cloned().unwrap_or_default();
        let same = |what: &str, actual: i64, expected: i64| {
            agree(&format!("{what} of {place:?}"), &actual, &expected).map_err(|fault| format!("{fault} in {row:?}"))
        };
        same("committed", row.committed, cursor.committed)?;
        same("failures", row.failures.into(), cursor.failures.into())?;
        same("deliveries", row.deliveries.into(), cursor.deliveries.into())?;
        same("whether leased", row.leased.into(), cursor.lease.is_some().into())?;
        same("whether ended", row.ended.into(), cursor.lease.is_some_and(|lease| lease.ended).into())?;
        if cursor.nonce.is_some() {
            agree(&format!("the nonce of {place:?}"), &row.nonce, &cursor.nonce)?;
            same("the end of the lease", row.through, cursor.through)?;
        }
        self.compare_due(place, &cursor, &row)
    }

    /// A message that waits is due or new, and no message is due before its time.
    fn compare_due(&self, place: Place, cursor: &Cursor, row: &Row) -> Check {
        let (newest, has_new) = self.now.partition_rows.get(&place.0).copied().unwrap_or_default();
        let wants_time = cursor.later || cursor.lease.is_some_and(|lease| !lease.ended);
        let right = match row.due {
            Due::Later => wants_time && newest > cursor.committed,
            Due::Now => !(wants_time && newest > cursor.committed),
            Due::Never => !wants_time && (newest <= cursor.committed.max(self.model.purged(place.0)) || has_new),
        };
        if right { Ok(()) } else { Err(format!("{place:?} is due {:?}, has_new: {has_new}; {cursor:?}", row.due)) }
    }
}
