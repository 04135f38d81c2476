//! One batch of the ack lane: whole leases in one statement, renewals in another, all the rest in a
//! third.
//!
//! Every statement is fenced by the nonce of the claim, and a repeat is found to be one: a batch
//! whose answer was lost is simply tried again. Only where somebody has claimed meanwhile what
//! follows can the repeat not tell whether the first attempt counted; then the answer is that
//! nobody knows.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio_postgres::Row;
use uuid::Uuid;

use super::settlement::{End, Place, Settled, Settlement};
use crate::batcher::{Failed, Work, interrupts};
use crate::database::{Connection, DatabaseError, Param};
use crate::messages::context::MessagesContext;
use crate::messages::error::MessagesError;
use crate::messages::ids::LeaseId;
use crate::messages::statements::{COMPLETE, RENEW, SETTLE};

/// What the ack lane does.
#[derive(Debug)]
pub(super) struct Settling {
    pub(super) context: Arc<MessagesContext>,
}

/// One thing asked of it.
#[derive(Debug)]
pub(super) enum Ask {
    /// A settlement under a lease, and what is known of it.
    Settle(Settlement, LeaseId, Heard),
    /// More time.
    Renew(Renewal),
}

/// What earlier attempts brought.
#[derive(Debug)]
pub(super) enum Heard {
    /// There was none.
    Nothing,
    /// One had no answer, for this reason.
    Cut(DatabaseError),
    /// It will never be known whether that one counted.
    Never(DatabaseError),
    Verdict(Verdict),
}

/// More time for every partition of a lease.
#[derive(Debug, Clone, Copy)]
pub(super) struct Renewal {
    pub(super) lease: LeaseId,
    /// `None` for the queue's own.
    pub(super) seconds: Option<f64>,
    pub(super) strict: bool,
}

#[derive(Debug)]
pub(super) enum Answer {
    Settled(Verdict),
    /// It may have been settled, or not.
    Unknown(DatabaseError),
    /// `None` when the lease holds nothing any more.
    Renewed(Option<Renewed>),
}

/// What became of a settlement, and where the cursor is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Verdict {
    pub(super) settled: Settled,
    /// What was settled before this, as far as it was looked at.
    pub(super) before: Option<i64>,
}

/// A lease that lasts longer now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Renewed {
    /// When it ends, by the database's clock.
    pub until: SystemTime,
    /// How long that is from now.
    pub remaining: Duration,
    /// How many partitions it holds.
    pub partitions: usize,
}

impl Work for Settling {
    type Item = Ask;
    type Answer = Answer;
    type Error = MessagesError;

    fn weight(item: &Ask) -> usize {
        match item {
            Ask::Settle(settlement, ..) => 96 + settlement.end.error().map_or(0, str::len),
            Ask::Renew(_) => 64,
        }
    }

    async fn run(&self, connection: &mut Connection, mut items: Vec<Ask>) -> Result<Vec<Answer>, Failed<Ask>> {
        let renewed = match self.run_all(connection, &mut items).await {
            Ok(renewed) => renewed,
            Err(error) => {
                if interrupts(&error) {
                    unanswered(&mut items, &error);
                }
                return Err((error, items));
            }
        };
        let answer = |item: &Ask| match item {
            Ask::Settle(_, _, Heard::Verdict(verdict)) => Answer::Settled(*verdict),
            Ask::Settle(_, _, Heard::Never(error)) => Answer::Unknown(error.clone()),
            Ask::Settle(_, _, Heard::Nothing | Heard::Cut(_)) => Answer::Settled(LOST),
            Ask::Renew(renewal) => Answer::Renewed(renewed.get(&renewal.lease).copied()),
        };
        Ok(items.iter().map(answer).collect())
    }
}

const LOST: Verdict = Verdict { settled: Settled::LeaseLost, before: None };
const WHOLE: Settled = Settled::Done { released: true, dead: false };

impl Settling {
    async fn run_all(
        &self,
        connection: &Connection,
        items: &mut [Ask],
    ) -> Result<HashMap<LeaseId, Renewed>, DatabaseError> {
        // Renewals go first: a lease must not end because acks were busy.
        let renewed = self.renew(connection, items).await?;
        self.complete(connection, items).await?;
        self.settle(connection, items).await?;
        Ok(renewed)
    }

    async fn renew(&self, connection: &Connection, items: &[Ask]) -> Result<HashMap<LeaseId, Renewed>, DatabaseError> {
        let asked =
            || items.iter().filter_map(|item| if let Ask::Renew(renewal) = item { Some(renewal) } else { None });
        if asked().next().is_none() {
            return Ok(HashMap::new());
        }
        let leases: Vec<Uuid> = asked().map(|renewal| renewal.lease.0).collect();
        let seconds: Vec<Option<f64>> = asked().map(|renewal| renewal.seconds).collect();
        let strict: Vec<bool> = asked().map(|renewal| renewal.strict).collect();
        let mut renewed: HashMap<LeaseId, Renewed> = HashMap::new();
        for row in connection.query(&RENEW, &[&leases, &seconds, &strict]).await? {
            let (until, remaining) = (row.get("lease_until"), seconds_of(&row, "lease_s"));
            let lease = renewed.entry(LeaseId(row.get("nonce"))).or_insert(Renewed { until, remaining, partitions: 0 });
            // The shortest counts: until then all of it is ours.
            lease.until = lease.until.min(until);
            lease.remaining = lease.remaining.min(remaining);
            lease.partitions += 1;
        }
        Ok(renewed)
    }

    /// Whole leases. Of two that say the same, the second is left to find itself a repeat.
    async fn complete(&self, connection: &Connection, items: &mut [Ask]) -> Result<(), DatabaseError> {
        let mut seen = HashSet::with_capacity(items.len());
        let whole: Vec<(usize, &Settlement, Uuid, i64)> = open(items)
            .filter_map(|(at, settlement, lease)| match settlement.end {
                End::Whole(through) => Some((at, settlement, lease.0, through)),
                End::Through(_) | End::At(..) | End::Released => None,
            })
            .filter(|(_, settlement, ..)| seen.insert(settlement.place))
            .collect();
        if whole.is_empty() {
            return Ok(());
        }
        let partitions: Vec<i32> = whole.iter().map(|(_, settlement, ..)| settlement.place.partition.0).collect();
        let groups: Vec<i32> = whole.iter().map(|(_, settlement, ..)| settlement.place.group.0).collect();
        let nonces: Vec<Uuid> = whole.iter().map(|(_, _, nonce, _)| *nonce).collect();
        let throughs: Vec<i64> = whole.iter().map(|(.., through)| *through).collect();
        let strict: Vec<bool> = whole.iter().map(|(_, settlement, ..)| settlement.strict).collect();
        let asked: Vec<(usize, Place)> = whole.iter().map(|(at, settlement, ..)| (*at, settlement.place)).collect();
        let rows = connection.query(&COMPLETE, &[&partitions, &groups, &nonces, &throughs, &strict]).await?;
        let read = |row: &Row| ((row.get("partition"), row.get("grp")), (row.get("more"), row.get("before")));
        let done: HashMap<(i32, i32), (bool, i64)> = rows.iter().map(read).collect();
        for (at, place) in asked {
            let Some((more, before)) = done.get(&(place.partition.0, place.group.0)) else { continue };
            note(&mut items[at], Verdict { settled: WHOLE, before: Some(*before) });
            if *more {
                self.context.notifier.freed(place.queue, place.group, place.partition);
            }
        }
        Ok(())
    }

    /// Everything that is not answered yet.
    async fn settle(&self, connection: &Connection, items: &mut [Ask]) -> Result<(), DatabaseError> {
        let rest: Vec<(usize, Place)> = open(items).map(|(at, settlement, _)| (at, settlement.place)).collect();
        if rest.is_empty() {
            return Ok(());
        }
        let rows = {
            let arrays = Arrays::of(open(items).map(|(_, settlement, lease)| (settlement, lease)));
            connection.query(&SETTLE, &arrays.params()).await?
        };
        for row in &rows {
            let Some((at, place)) = rest.get(item_of(row)) else { continue };
            if matches!(&items[*at], Ask::Settle(_, _, Heard::Cut(_))) {
                // An attempt whose answer was lost may have freed the partition, and woke nobody.
                self.context.notifier.freed(place.queue, place.group, place.partition);
            }
            note(&mut items[*at], verdict(row));
            wake(&self.context, row, *place);
        }
        Ok(())
    }
}

/// Settles leases of which nobody is to hear. Not by the statement for whole leases: that one
/// passes over what others touch.
pub(in crate::messages) async fn pass_whole(
    connection: &Connection,
    settlements: &[Settlement],
) -> Result<(), DatabaseError> {
    let arrays = Arrays::of(settlements.iter().filter_map(|settlement| Some((settlement, settlement.lease?))));
    if !arrays.partitions.is_empty() {
        connection.execute(&SETTLE, &arrays.params()).await?;
    }
    Ok(())
}

/// A settlement was committed: wake whoever can use it.
pub(super) fn wake(context: &MessagesContext, row: &Row, place: Place) {
    if !row.get::<_, bool>("more") {
        return;
    }
    let delay = seconds_of(row, "due_s");
    if delay.is_zero() {
        context.notifier.freed(place.queue, place.group, place.partition);
    } else {
        context.notifier.after(place.queue, place.group, place.partition, delay);
    }
}

/// Which of the settlements a row is about.
pub(super) fn item_of(row: &Row) -> usize {
    usize::try_from(row.get::<_, i32>("item") - 1).unwrap_or(usize::MAX)
}

/// Settlements as the statement takes them.
#[derive(Debug, Default)]
pub(super) struct Arrays<'s> {
    partitions: Vec<i32>,
    groups: Vec<i32>,
    nonces: Vec<Uuid>,
    throughs: Vec<i64>,
    outcomes: Vec<&'static str>,
    errors: Vec<Option<&'s str>>,
    strict: Vec<bool>,
}

impl<'s> Arrays<'s> {
    pub(super) fn of(settlements: impl Iterator<Item = (&'s Settlement, LeaseId)>) -> Self {
        let mut arrays = Self::default();
        for (settlement, lease) in settlements {
            arrays.partitions.push(settlement.place.partition.0);
            arrays.groups.push(settlement.place.group.0);
            arrays.nonces.push(lease.0);
            arrays.throughs.push(settlement.end.through());
            arrays.outcomes.push(settlement.end.word());
            arrays.errors.push(settlement.end.error());
            arrays.strict.push(settlement.strict);
        }
        arrays
    }

    pub(super) fn params(&self) -> [Param<'_>; 7] {
        let Self { partitions, groups, nonces, throughs, outcomes, errors, strict } = self;
        [partitions, groups, nonces, throughs, outcomes, errors, strict]
    }
}

/// Settlements that nothing is known of yet, by their place in the batch.
fn open(items: &[Ask]) -> impl Iterator<Item = (usize, &Settlement, LeaseId)> {
    items.iter().enumerate().filter_map(|(at, item)| match item {
        Ask::Settle(settlement, lease, Heard::Nothing | Heard::Cut(_)) => Some((at, settlement, *lease)),
        Ask::Settle(_, _, Heard::Verdict(_) | Heard::Never(_)) | Ask::Renew(_) => None,
    })
}

/// Whatever has no verdict yet may have been settled by the attempt that failed.
fn unanswered(items: &mut [Ask], error: &DatabaseError) {
    for item in items {
        if let Ask::Settle(_, _, heard @ Heard::Nothing) = item {
            *heard = Heard::Cut(error.clone());
        }
    }
}

fn note(item: &mut Ask, found: Verdict) {
    let Ask::Settle(settlement, _, heard) = item else { return };
    let lost = found.settled == Settled::LeaseLost;
    *heard = match std::mem::replace(heard, Heard::Nothing) {
        Heard::Cut(error) if lost && settlement.end.may_have_counted(found.before) => Heard::Never(error),
        _ => Heard::Verdict(found),
    };
}

pub(super) fn verdict(row: &Row) -> Verdict {
    let settled = match row.get("said") {
        "settled" => Settled::Done { released: row.get("released"), dead: row.get("dead") },
        "already" => Settled::Already,
        "passed" => Settled::Passed,
        "expired" => Settled::Expired,
        "outside" => Settled::Outside,
        _ => Settled::LeaseLost,
    };
    Verdict { settled, before: row.get("before") }
}

fn seconds_of(row: &Row, column: &str) -> Duration {
    let seconds: Option<f64> = row.get(column);
    Duration::try_from_secs_f64(seconds.unwrap_or_default()).unwrap_or_default()
}
