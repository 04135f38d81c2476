//! Settles one batch: renewals in one statement, whole leases in a second, all others in a third.
//!
//! Owns what is known of each request of the batch. Promises that every settlement is fenced by the
//! nonce of its claim, and that a batch whose answer was lost can be tried again: a repeat is
//! recognized. There is one exception. If another consumer has claimed the next messages in
//! between, the repeat cannot show whether the first attempt counted; then the answer is an error
//! that says so.
//!
//! Next: `columns`, then `sql/messages/settle/complete.sql` for whole leases,
//! `sql/functions/settle.sql` for all others.

mod columns;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio_postgres::Row;
use uuid::Uuid;

use super::settlement::{CursorKey, Settled, Settlement};
use crate::batcher::{Failed, Work, interrupts};
use crate::database::{Connection, DatabaseError};
use crate::messages::context::MessagesContext;
use crate::messages::error::MessagesError;
use crate::messages::ids::LeaseId;
use crate::messages::statements::{COMPLETE, RENEW, SETTLE};
pub(super) use columns::Arrays;
use columns::WholeLeases;

/// The work of the batcher for acks.
#[derive(Debug)]
pub(super) struct Settling {
    pub(super) context: Arc<MessagesContext>,
}

#[derive(Debug)]
pub(super) enum Request {
    Settle(SettleRequest),
    /// More time for a lease.
    Renew(Renewal),
}

/// A settlement under a lease, and what is known of it.
#[derive(Debug)]
pub(super) struct SettleRequest {
    settlement: Settlement,
    lease: LeaseId,
    progress: Progress,
}

/// How far a settlement is, after any number of attempts.
#[derive(Debug)]
enum Progress {
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
            Request::Settle(request) => 96 + request.settlement.end.error().map_or(0, str::len),
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
            Request::Settle(request) => request.answer(),
            Request::Renew(renewal) => Answer::Renewed(renewed.get(&renewal.lease).copied()),
        };
        Ok(items.iter().map(answer).collect())
    }
}

impl SettleRequest {
    pub(super) const fn new(settlement: Settlement, lease: LeaseId) -> Self {
        Self { settlement, lease, progress: Progress::Open }
    }

    /// A statement decided it.
    fn decide(&mut self, verdict: Verdict) {
        let lost = verdict.settled == Settled::LeaseLost;
        self.progress = match std::mem::replace(&mut self.progress, Progress::Open) {
            Progress::Interrupted(error) if lost && self.settlement.end.may_have_counted(verdict.before) => {
                Progress::Unknown(error)
            }
            _ => Progress::Decided(verdict),
        };
    }

    fn is_open(&self) -> bool {
        matches!(self.progress, Progress::Open | Progress::Interrupted(_))
    }

    fn answer(&self) -> Answer {
        match &self.progress {
            Progress::Decided(verdict) => Answer::Settled(*verdict),
            Progress::Unknown(error) => Answer::Unknown(error.clone()),
            // No statement returned a row for it.
            Progress::Open | Progress::Interrupted(_) => {
                Answer::Settled(Verdict { settled: Settled::LeaseLost, before: None })
            }
        }
    }
}

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
        let whole = WholeLeases::of(open(items));
        if whole.positions.is_empty() {
            return Ok(());
        }
        let rows = connection.query(&COMPLETE, &whole.params()).await?;
        let completed: HashMap<(i32, i32), &Row> =
            rows.iter().map(|row| ((row.get("partition"), row.get("grp")), row)).collect();
        for position in whole.positions {
            let Request::Settle(request) = &mut items[position] else { continue };
            let cursor = request.settlement.cursor;
            // A lease that the statement left out stays open: the other statement decides it.
            let Some(row) = completed.get(&(cursor.partition.0, cursor.group.0)) else { continue };
            let settled = Settled::Done { released: true, dead: false };
            request.decide(Verdict { settled, before: Some(row.get("before")) });
            if row.get("more") {
                self.context.notifier.freed(cursor.queue, cursor.group, cursor.partition);
            }
        }
        Ok(())
    }

    /// Settles everything that is not decided yet.
    async fn settle(&self, connection: &Connection, items: &mut [Request]) -> Result<(), DatabaseError> {
        let positions: Vec<usize> = open(items).map(|(position, _)| position).collect();
        if positions.is_empty() {
            return Ok(());
        }
        let rows = {
            let arrays = Arrays::of(open(items).map(|(_, request)| (&request.settlement, request.lease)));
            connection.query(&SETTLE, &arrays.params()).await?
        };
        for row in &rows {
            let Some(position) = positions.get(item_of(row)) else { continue };
            let Request::Settle(request) = &mut items[*position] else { continue };
            let cursor = request.settlement.cursor;
            if matches!(request.progress, Progress::Interrupted(_)) {
                // An attempt whose answer was lost may have freed the partition, and woke nobody.
                self.context.notifier.freed(cursor.queue, cursor.group, cursor.partition);
            }
            request.decide(verdict(row));
            announce_freed(&self.context, row, cursor);
        }
        Ok(())
    }
}

/// Settles leases without a message, which no consumer received. Not by the statement for whole
/// leases, which leaves out a cursor that another statement changed while it waited.
pub(in crate::messages) async fn settle_empty(
    connection: &Connection,
    settlements: &[Settlement],
) -> Result<(), DatabaseError> {
    let arrays = Arrays::of(settlements.iter().filter_map(|settlement| Some((settlement, settlement.lease?))));
    if !arrays.is_empty() {
        connection.execute(&SETTLE, &arrays.params()).await?;
    }
    Ok(())
}

/// A settlement was committed: announces the partition if it has more messages for the group, now
/// or after a delay.
pub(super) fn announce_freed(context: &MessagesContext, row: &Row, cursor: CursorKey) {
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

/// Settlements that are not decided yet, with their position in the batch.
fn open(items: &[Request]) -> impl Iterator<Item = (usize, &SettleRequest)> {
    items.iter().enumerate().filter_map(|(position, item)| match item {
        Request::Settle(request) => request.is_open().then_some((position, request)),
        Request::Renew(_) => None,
    })
}

/// Settlements without a verdict may have taken effect in the attempt that failed.
fn note_interrupted(items: &mut [Request], error: &DatabaseError) {
    for item in items {
        if let Request::Settle(SettleRequest { progress: progress @ Progress::Open, .. }) = item {
            *progress = Progress::Interrupted(error.clone());
        }
    }
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
