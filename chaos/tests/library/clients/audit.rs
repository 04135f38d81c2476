//! Whether everything that was recorded can be true together, and with what the tables hold.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::PoisonError;

use reveille::messages::{LeaseId, MessageId};
use tokio_postgres::Client;
use uuid::Uuid;

use super::{Fate, GROUPS, LeaseNote, Notes, PushNote};

/// What is wrong, in words; none of it should be.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    pub(crate) list: Vec<String>,
    pub(crate) stranded: Vec<String>,
    pub(crate) checks: u64,
    pub(crate) pushed: usize,
    pub(crate) leases: usize,
}

impl Faults {
    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty() && self.stranded.is_empty()
    }
}

/// Partition and place of every message.
type Logs = BTreeMap<u8, Vec<MessageId>>;

pub(crate) async fn audit(client: &Client, notes: &Notes) -> Faults {
    let pushes = notes.pushes.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let leases = notes.leases.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let mut faults = Faults { pushed: pushes.len(), leases: leases.len(), ..Faults::default() };
    let logs = logs(client, &mut faults.list).await;
    check_pushes(&logs, &pushes, &mut faults.list);
    let epochs = epochs(client).await;
    for group in 0..GROUPS {
        for (partition, log) in &logs {
            let mine = leases.iter().filter(|lease| lease.group == group && lease.partition == *partition);
            let mut mine: Vec<(i64, &LeaseNote)> = mine
                .map(|lease| (epochs.get(&(lease.lease, *partition, group)).copied().unwrap_or(i64::MAX), lease))
                .collect();
            mine.sort_by_key(|(epoch, _)| *epoch);
            check_place((*partition, group), log, &mine, &mut faults.list);
        }
    }
    faults.list.truncate(20);
    faults
}

async fn logs(client: &Client, faults: &mut Vec<String>) -> Logs {
    let read = "
        select partition.name, segment.last_seq - segment.n + message.i, message.id
        from reveille.partition
        join reveille.segment on segment.partition = partition.id
        cross join lateral unnest(segment.ids) with ordinality as message (id, i)
        order by partition.id, 2";
    let mut logs = Logs::new();
    for row in client.query(read, &[]).await.expect("the log can be read") {
        let log = logs.entry(row.get::<_, &str>(0)[1..].parse().expect("a number")).or_default();
        log.push(MessageId(row.get(2)));
        if row.get::<_, i64>(1) != count(log) {
            faults.push(format!(
                "{}: the log has a hole or an overlap at {}",
                row.get::<_, &str>(0),
                row.get::<_, i64>(1)
            ));
        }
    }
    logs
}

/// Every push that was answered is there, once, at the place in the answer, and each pusher's own
/// order is kept.
fn check_pushes(logs: &Logs, pushes: &[PushNote], faults: &mut Vec<String>) {
    let mut places: HashMap<MessageId, (u8, i64)> = HashMap::new();
    for (partition, log) in logs {
        for (seq, id) in (1..).zip(log) {
            if places.insert(*id, (*partition, seq)).is_some() {
                faults.push(format!("{id} is in the log twice"));
            }
        }
    }
    let mut last: HashMap<(u64, u8), i64> = HashMap::new();
    let mut names: HashSet<(u8, &str)> = HashSet::new();
    for push in pushes {
        let place = places.get(&push.id).copied();
        let right = match push.fate {
            Fate::Stored(seq) => place == Some((push.partition, seq)),
            Fate::Sent if place.is_none() => push.name.is_some(),
            Fate::Sent => place.is_some_and(|(partition, _)| partition == push.partition),
            Fate::Refused => place.is_none(),
        };
        if !right {
            faults.push(format!("{push:?} is at {place:?}"));
        }
        if let (Some(_), Some(name)) = (place, &push.name)
            && !names.insert((push.partition, name))
        {
            faults.push(format!("{push:?} is not the first of its name"));
        }
        if let Some((_, seq)) = place {
            let before = last.insert((push.pusher, push.partition), seq);
            if before.is_some_and(|before| before >= seq) {
                faults.push(format!("{push:?} came before what was pushed earlier, {before:?}"));
            }
        }
    }
    let known: HashSet<MessageId> = pushes.iter().map(|push| push.id).collect();
    faults.extend(places.keys().filter(|id| !known.contains(id)).map(|id| format!("{id} was never pushed")));
}

/// Leases of a place, in the order they were given: each begins where what was settled before it
/// ends, and brings what is in the log there. So a message is settled once, in order, and never
/// under a lease that was lost.
fn check_place(place: (u8, u8), log: &[MessageId], leases: &[(i64, &LeaseNote)], faults: &mut Vec<String>) {
    let mut settled = 0;
    for (epoch, lease) in leases {
        let first = lease.seqs.first().map_or(0, |(seq, _)| *seq);
        if first != settled + 1 {
            faults.push(format!("{place:?}: epoch {epoch} begins with {first}, but {settled} were settled before it"));
        }
        for ((seq, id), expected) in lease.seqs.iter().zip(first..) {
            let held = usize::try_from(*seq - 1).ok().and_then(|at| log.get(at));
            if *seq != expected || held != Some(id) {
                faults.push(format!("{place:?}: epoch {epoch} brought {id} as {seq}, in the log is {held:?}"));
            }
        }
        settled = settled.max(lease.settled.unwrap_or_default());
    }
    if settled != count(log) {
        faults.push(format!("{place:?}: {settled} of {} messages were settled", log.len()));
    }
}

/// The epoch each lease had.
async fn epochs(client: &Client) -> HashMap<(LeaseId, u8, u8), i64> {
    let read = "
        select claimed.nonce, partition.name, consumer_group.name, claimed.epoch
        from claimed
        join reveille.partition on partition.id = claimed.partition
        join reveille.consumer_group on consumer_group.id = claimed.grp";
    let rows = client.query(read, &[]).await.expect("the epochs can be read");
    let number = |name: &str| name[1..].parse().expect("a number");
    rows.iter()
        .map(|row| ((LeaseId(row.get::<_, Uuid>(0)), number(row.get(1)), number(row.get(2))), row.get(3)))
        .collect()
}

fn count(log: &[MessageId]) -> i64 {
    i64::try_from(log.len()).expect("a short log")
}
