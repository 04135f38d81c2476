//! Pushes and acks in one commit.

use reveille::messages::{Changes, Settlement, TransactionOutcome};

use super::consuming::{Attempt, acknowledgement, attempt};
use super::pushing::transaction_id;
use super::{Play, agree};
use crate::model::{Check, Settling, Together, TogetherEnd};
use crate::story::{Item, Step};

impl Play<'_> {
    pub(super) async fn transaction(&mut self, step: &Step) -> Check {
        let Step::Transaction { node, items, .. } = step else { return Ok(()) };
        let payloads: Vec<Vec<u8>> = items.iter().map(|_| self.payload()).collect();
        let pushes = items.iter().zip(&payloads).map(|(item, payload)| self.item(*item, payload));
        let changes = pushes.fold(Changes::new(), Changes::push);
        let (changes, expected) = self.acks(step, changes);
        let answer = self.node(*node).transaction(changes).await;
        let answer = answer.map_err(|error| format!("a transaction failed: {error:?}"))?;
        match (answer, self.model.together(&expected)) {
            (TransactionOutcome::Committed { pushed, settled }, TogetherEnd::Committed(expected)) => {
                agree("the settlements of a transaction", &settled, &expected)?;
                agree("how many pushes", &pushed.len(), &items.len())?;
                for ((item, payload), answer) in items.iter().zip(&payloads).zip(&pushed) {
                    self.pushed(*item, payload, answer)?;
                }
                Ok(())
            }
            // Of two pushes with one name the first was never stored: its id is unknown.
            (TransactionOutcome::Duplicate { push, .. }, TogetherEnd::Duplicate(expected, None)) => {
                agree("which push is a duplicate", &push, &expected)
            }
            (TransactionOutcome::Duplicate { push, of }, expected) => {
                agree("a transaction", &TogetherEnd::Duplicate(push, Some(of)), &expected)
            }
            (TransactionOutcome::Refused { ack, why }, expected) => {
                agree("a transaction", &TogetherEnd::Refused(ack, why), &expected)
            }
            (answer, expected) => Err(format!("a transaction: the database says {answer:?}, the model {expected:?}")),
        }
    }

    /// Adds what is settled by lease and what by transaction id, and reports it to the model in the
    /// same order.
    fn acks(&self, step: &Step, changes: Changes) -> (Changes, Together) {
        let mut expected = Together { pushes: Vec::new(), settlements: Vec::new(), acks: Vec::new() };
        let Step::Transaction { node, items, settled, acked, named, strict } = step else { return (changes, expected) };
        expected.pushes = items.iter().map(|item: &Item| (item.partition, transaction_id(*item))).collect();
        let mut changes = changes;
        for (which, how) in settled {
            let Some((held, part)) = self.pick(*which) else { continue };
            let (settlement, place, lease, end): Attempt = attempt(held, part, *how);
            changes = changes.settle(strictly(settlement, *strict));
            expected.settlements.push(Settling { place, lease, end, strict: *strict });
        }
        for (which, at, outcome) in acked {
            let Some((held, part)) = self.pick(*which) else { continue };
            let (uid, ack) = self.ack(held, part, (*at, *outcome), (*node, *named, *strict));
            changes = changes.acknowledge(acknowledgement(uid, &ack));
            expected.acks.push(ack);
        }
        (changes, expected)
    }
}

fn strictly(settlement: Settlement, strict: bool) -> Settlement {
    if strict { settlement.strict() } else { settlement }
}
