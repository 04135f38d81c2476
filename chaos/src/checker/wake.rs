//! While all is calm, a consumer that waits is woken in time.

use std::collections::HashMap;

use super::ledger::{GroupId, Ledger};
use super::{Column, Verdict};
use crate::clock::{Micros, seconds};
use crate::history::{Key, Promise};

/// A hint that is lost with a dying peer costs one heartbeat of 12 s. The rest is for a machine
/// with other work.
const BOUND: Micros = seconds(16);

pub(super) fn in_time(ledger: &Ledger<'_>, verdict: &mut Verdict) {
    let Some(calm_from) = ledger.calm_from else { return };
    let mut first: HashMap<(GroupId, Key), Micros> = HashMap::new();
    for delivery in ledger.deliveries.iter().filter(|delivery| delivery.at >= calm_from) {
        for key in delivery.keys.iter() {
            first.entry((delivery.group, key)).or_insert(delivery.at);
        }
    }
    let mut wakes = Vec::new();
    for ((group, key), at) in first {
        let Some(message) = ledger.messages.get(&key) else { continue };
        let Some(stored) = message.ok.filter(|_| message.began >= calm_from) else { continue };
        if ledger.group(group).promise == Promise::Effects {
            continue;
        }
        let waited = at.saturating_sub(stored);
        wakes.push(waited);
        if waited > BOUND {
            let sentence = format!("was not delivered for {} ms although a consumer waited", waited / 1000);
            verdict.add(Column::MissedWake, Some(key), Some(ledger.group(group).name), sentence);
        }
    }
    verdict.counted.calm_wakes = wakes;
}
