//! Order within a partition: that of the pushes, and the same for every group.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::ledger::{Delivery, GroupId, Ledger};
use super::{Column, Verdict};
use crate::clock::Micros;
use crate::history::{Key, Place, Promise};

/// Checks every place by itself.
pub(super) fn in_order(ledger: &Ledger<'_>, verdict: &mut Verdict) {
    let mut places: BTreeMap<&Place, Vec<&Delivery<'_>>> = BTreeMap::new();
    for delivery in &ledger.deliveries {
        places.entry(delivery.place).or_default().push(delivery);
    }
    for deliveries in places.values() {
        let orders = orders_by_group(ledger, deliveries);
        let Some((_, reference)) = orders.iter().max_by_key(|(_, order)| order.len()) else { continue };
        let position: HashMap<Key, usize> = reference.iter().enumerate().map(|(n, &key)| (key, n)).collect();
        as_pushed(ledger, reference, verdict);
        for (&group, order) in &orders {
            same_order(ledger, group, order, &position, verdict);
        }
        for delivery in deliveries {
            let keys: Vec<Key> = delivery.keys.iter().collect();
            same_order(ledger, delivery.group, &keys, &position, verdict);
        }
    }
}

/// The order in which a group first received the messages of a place. One lease at a time makes
/// that their order; a pop that settles has no lease, so groups of such pops are left out.
fn orders_by_group(ledger: &Ledger<'_>, deliveries: &[&Delivery<'_>]) -> BTreeMap<GroupId, Vec<Key>> {
    let mut orders: BTreeMap<GroupId, (Vec<Key>, HashSet<Key>)> = BTreeMap::new();
    for delivery in deliveries.iter().filter(|it| ledger.group(it.group).promise != Promise::AutoAck) {
        let (order, known) = orders.entry(delivery.group).or_default();
        order.extend(delivery.keys.iter().filter(|&key| known.insert(key)));
    }
    orders.into_iter().map(|(group, (order, _))| (group, order)).collect()
}

/// A push that began after another's was answered comes after it.
fn as_pushed(ledger: &Ledger<'_>, order: &[Key], verdict: &mut Verdict) {
    let mut earliest: Option<(Micros, Key)> = None;
    for &key in order.iter().rev() {
        let Some(message) = ledger.messages.get(&key) else { continue };
        if let Some((answered, later)) = earliest
            && answered < message.began
        {
            let sentence = format!("comes before {later}, which was stored before this was pushed");
            verdict.add(Column::OutOfOrder, Some(key), None, sentence);
        }
        if let Some(ok) = message.ok
            && earliest.is_none_or(|(answered, _)| ok < answered)
        {
            earliest = Some((ok, key));
        }
    }
}

fn same_order(
    ledger: &Ledger<'_>,
    group: GroupId,
    keys: &[Key],
    position: &HashMap<Key, usize>,
    verdict: &mut Verdict,
) {
    let mut last: Option<(usize, Key)> = None;
    for &key in keys {
        let Some(&here) = position.get(&key) else { continue };
        if let Some((before, earlier)) = last
            && here <= before
        {
            let sentence = format!("came after {earlier}, and before it elsewhere");
            verdict.add(Column::OutOfOrder, Some(key), Some(ledger.group(group).name), sentence);
        }
        last = Some((here, key));
    }
}
