//! Settles one batch: renewals in one statement, whole leases in a second, all others in a third.
//!
//! Owns what is known of each request of the batch. Promises that every settlement is fenced by the
//! nonce of its claim, and that a batch whose answer was lost can be tried again: a repeat is
//! recognized. There is one exception. If another consumer has claimed the next messages in
//! between, the repeat cannot show whether the first attempt counted; then the answer is an error
//! that says so.
//!
//! Next: `sql/messages/settle/complete.sql` for whole leases, `sql/functions/settle.sql` for all
//! others.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio_postgres::Row;
use uuid::Uuid;

use super::settlement::{CursorKey, End, Settled, Settlement};
use crate::batcher::{Failed, Work, interrupts};
use crate::database::{Connection, DatabaseError, Param};
use crate::messages::context::MessagesContext;
use crate::messages::error::MessagesError;
use crate::messages::ids::LeaseId;
use crate::messages::statements::{COMPLETE, RENEW, SETTLE};

/// The work of the batcher for acks.
#[derive(Debug)]
pub(super) struct Settling {
    pub(super) context: Arc<MessagesContext>,
}

#[derive(Debug)]
pub(super) enum Request {
    /// A settlement under a lease, and what is known of it.
    Settle(Settlement, LeaseId, Progress),
    /// More time for a lease.
    Renew(Renewal),
}

/// How far a settlement is, after any number of attempts.
#[derive(Debug)]
pub(super) enum Progress {
    /// Not decided, and no attempt was interrupted.
    Open,
    /// An attempt may have settled the lease: its answer was lost, for this reason.
    Interrupted(DatabaseError),
    /// The same, and no repeat can find it out any more.
    Unknown(DatabaseError),
    Decided(Verdict),
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
    /// The last sequence that was settled before this, if the statement read it.
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
    type Item = Request;
    type Answer = Answer;
    type Error = MessagesError;

    fn weight(item: &Request) -> usize {
        match item {
            Request::Settle(settlement, ..) => 96 + settlement.end.error().map_or(0, str::len),
            Request::Renew(_) => 64,
        }
    }

    async fn run(&self, connection: &mut Connection, mut items: Vec<Request>) -> Result<Vec<Answer>, Failed<Request>> {
        let renewed = match self.run_all(connection, &mut items).await {
            Ok(renewed) => renewed,
            Err(error) => {
                if interrupts(&error) {
                    note_interrupted(&mut items, &error);
                }
                return Err((error, items));
            }
        };
        let answer = |item: &Request| match item {
            Request::Settle(_, _, Progress::Decided(verdict)) => Answer::Settled(*verdict),
            Request::Settle(_, _, Progress::Unknown(error)) => Answer::Unknown(error.clone()),
            Request::Settle(_, _, Progress::Open | Progress::Interrupted(_)) => Answer::Settled(LOST),
            Request::Renew(renewal) => Answer::Renewed(renewed.get(&renewal.lease).copied()),
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
        items: &mut [Request],
    ) -> Result<HashMap<LeaseId, Renewed>, DatabaseError> {
        // Renewals go first: a lease must not end because acks were busy.
        let renewed = self.renew(connection, items).await?;
        self.complete(connection, items).await?;
        self.settle(connection, items).await?;
        Ok(renewed)
    }

    async fn renew(
        &self,
        connection: &Connection,
        items: &[Request],
    ) -> Result<HashMap<LeaseId, Renewed>, DatabaseError> {
        let renewals =
            || items.iter().filter_map(|item| if let Request::Renew(renewal) = item { Some(renewal) } else { None });
        if renewals().next().is_none() {
            return Ok(HashMap::new());
        }
        let leases: Vec<Uuid> = renewals().map(|renewal| renewal.lease.0).collect();
        let seconds: Vec<Option<f64>> = renewals().map(|renewal| renewal.seconds).collect();
        let strict: Vec<bool> = renewals().map(|renewal| renewal.strict).collect();
        let mut renewed: HashMap<LeaseId, Renewed> = HashMap::new();
        for row in connection.query(&RENEW, &[&leases, &seconds, &strict]).await? {
            let (until, remaining) = (row.get("lease_until"), seconds_of(&row, "lease_s"));
            let lease = renewed.entry(LeaseId(row.get("nonce"))).or_insert(Renewed { until, remaining, partitions: 0 });
            // The partition whose lease ends first counts: until then the lease holds all of them.
            lease.until = lease.until.min(until);
            lease.remaining = lease.remaining.min(remaining);
            lease.partitions += 1;
        }
        Ok(renewed)
    }

    /// Settles whole leases. If one is in the batch twice, the other statement finds that the
    /// second is a repeat.
    async fn complete(&self, connection: &Connection, items: &mut [Request]) -> Result<(), DatabaseError> {
        let mut seen = HashSet::with_capacity(items.len());
        let whole: Vec<(usize, &Settlement, Uuid, i64)> = open(items)
            .filter_map(|(at, settlement, lease)| match settlement.end {
                End::Whole(through) => Some((at, settlement, lease.0, through)),
                End::Through(_) | End::At(..) | End::Released => None,
            })
            .filter(|(_, settlement, ..)| seen.insert(settlement.cursor))
            .collect();
        if whole.is_empty() {
            return Ok(());
        }
        let partitions: Vec<i32> = whole.iter().map(|(_, settlement, ..)| settlement.cursor.partition.0).collect();
        let groups: Vec<i32> = whole.iter().map(|(_, settlement, ..)| settlement.cursor.group.0).collect();
        let nonces: Vec<Uuid> = whole.iter().map(|(_, _, nonce, _)| *nonce).collect();
        let throughs: Vec<i64> = whole.iter().map(|(.., through)| *through).collect();
        let strict: Vec<bool> = whole.iter().map(|(_, settlement, ..)| settlement.strict).collect();
        let cursors: Vec<(usize, CursorKey)> =
            whole.iter().map(|(at, settlement, ..)| (*at, settlement.cursor)).collect();
        let rows = connection.query(&COMPLETE, &[&partitions, &groups, &nonces, &throughs, &strict]).await?;
        let read = |row: &Row| ((row.get("partition"), row.get("grp")), (row.get("more"), row.get("before")));
        let done: HashMap<(i32, i32), (bool, i64)> = rows.iter().map(read).collect();
        for (at, cursor) in cursors {
            let Some((more, before)) = done.get(&(cursor.partition.0, cursor.group.0)) else { continue };
            note(&mut items[at], Verdict { settled: WHOLE, before: Some(*before) });
            if *more {
                self.context.notifier.freed(cursor.queue, cursor.group, cursor.partition);
            }
        }
        Ok(())
    }

    /// Settles everything that is not decided yet.
    async fn settle(&self, connection: &Connection, items: &mut [Request]) -> Result<(), DatabaseError> {
        let cursors: Vec<(usize, CursorKey)> = open(items).map(|(at, settlement, _)| (at, settlement.cursor)).collect();
        if cursors.is_empty() {
            return Ok(());
        }
        let rows = {
            let arrays = Arrays::of(open(items).map(|(_, settlement, lease)| (settlement, lease)));
            connection.query(&SETTLE, &arrays.params()).await?
        };
        for row in &rows {
            let Some((at, cursor)) = cursors.get(item_of(row)) else { continue };
            if matches!(&items[*at], Request::Settle(_, _, Progress::Interrupted(_))) {
                // An attempt whose answer was lost may have freed the partition, and woke nobody.
                self.context.notifier.freed(cursor.queue, cursor.group, cursor.partition);
            }
            note(&mut items[*at], verdict(row));
            wake(&self.context, row, *cursor);
        }
        Ok(())
    }
}

/// Settles leases that no consumer received. Not by the statement for whole leases, which leaves
/// out a cursor that another statement changed while it waited.
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

/// A settlement was committed: wakes the group if the partition has more messages for it.
pub(super) fn wake(context: &MessagesContext, row: &Row, cursor: CursorKey) {
    if !row.get::<_, bool>("more") {
        return;
    }
    let delay = seconds_of(row, "due_s");
    if delay.is_zero() {
        context.notifier.freed(cursor.queue, cursor.group, cursor.partition);
    } else {
        context.notifier.freed_after(cursor.queue, cursor.group, cursor.partition, delay);
    }
}

/// Which of the settlements a row is about.
pub(super) fn item_of(row: &Row) -> usize {
    usize::try_from(row.get::<_, i32>("item") - 1).unwrap_or(usize::MAX)
}

/// Settlements as the parameters of the statement.
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

    pub(super) fn params(&self) -> [Param<'_>; 7] {
        let Self { partitions, groups, nonces, throughs, outcomes, errors, strict } = self;
        [partitions, groups, nonces, throughs, outcomes, errors, strict]
    }
}

/// Settlements that are not decided yet, with their position in the batch.
fn open(items: &[Request]) -> impl Iterator<Item = (usize, &Settlement, LeaseId)> {
    items.iter().enumerate().filter_map(|(at, item)| match item {
        Request::Settle(settlement, lease, Progress::Open | Progress::Interrupted(_)) => Some((at, settlement, *lease)),
        Request::Settle(_, _, Progress::Decided(_) | Progress::Unknown(_)) | Request::Renew(_) => None,
    })
}

/// Settlements without a verdict may have taken effect in the attempt that failed.
fn note_interrupted(items: &mut [Request], error: &DatabaseError) {
    for item in items {
        if let Request::Settle(_, _, progress @ Progress::Open) = item {
            *progress = Progress::Interrupted(error.clone());
        }
    }
}

fn note(item: &mut Request, verdict: Verdict) {
    let Request::Settle(settlement, _, progress) = item else { return };
    let lost = verdict.settled == Settled::LeaseLost;
    *progress = match std::mem::replace(progress, Progress::Open) {
        Progress::Interrupted(error) if lost && settlement.end.may_have_counted(verdict.before) => {
            Progress::Unknown(error)
        }
        _ => Progress::Decided(verdict),
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
