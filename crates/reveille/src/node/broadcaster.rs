//! Announces committed work: wakes the sources of this process at once, and sends hints to the
//! other nodes from a task of its own.
//!
//! Owns the hints this process has for other nodes, and the connection that carries them. Promises
//! that the sources are woken, with the typed value, before an announcement returns; that a hint is
//! sent at once while hints are rare, and together with others otherwise; that after a lost
//! connection it sends the hint "everything"; and that [`flush`](Broadcaster::flush) returns when
//! every hint announced before it has been sent. Never part of a producer's transaction: a NOTIFY
//! there takes a lock on the whole database until the commit is on disk.
//!
//! Next: [`super::roster`], the sources of this process; [`super::listener`] on the other nodes.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use reveille_wake::Cause;
use tokio::sync::{Notify, watch};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::budget::Budget;
use super::hint::{HintSet, Line, payloads};
use super::statements::BROADCAST;
use super::work_source::Hint;
use super::{RECONNECT, Service, supervised};
use crate::database::connection::{Connection, Param};
use crate::database::connector::Purpose;
use crate::database::error::DatabaseError;
use crate::database::outage::warn_unless_away;

/// More notifications than this at once are replaced by one that says "everything".
const PAYLOADS_MAX: usize = 4;
/// How long a close waits for the last hints.
const FLUSH_WITHIN: Duration = Duration::from_secs(2);
/// A connection without an answer for so long is given up: meanwhile no hint is sent.
const SEND_WITHIN: Duration = Duration::from_secs(4);

/// Announces committed work to this process and to other nodes. Clones are the same broadcaster.
#[derive(Debug, Clone)]
pub struct Broadcaster {
    service: Arc<Service>,
}

/// Hints to be sent, and how many have been.
#[derive(Debug)]
pub(super) struct PendingHints {
    unsent: Mutex<Unsent>,
    arrived: Notify,
    /// Of the hints announced since the start, so many have been sent.
    sent: watch::Sender<u64>,
    /// Set when the first hint has started the task.
    started: OnceLock<()>,
}

#[derive(Debug, Default)]
struct Unsent {
    hints: HintSet,
    /// Hints that were announced since the start.
    announced: u64,
}

impl Default for PendingHints {
    fn default() -> Self {
        Self { unsent: Mutex::default(), arrived: Notify::new(), sent: watch::Sender::new(0), started: OnceLock::new() }
    }
}

impl Broadcaster {
    pub(super) fn new(service: Arc<Service>) -> Self {
        Self { service }
    }

    /// Announces committed work that is ready: wakes the sources of that name in this process,
    /// leaves other nodes to the broadcaster's task, and returns at once.
    pub fn announce<H: Hint>(&self, source: &str, hint: &H, cause: Cause) {
        self.service.roster.named(source, |here| here.wake(hint, cause));
        self.enqueue(Line::about(source, &hint.to_text(), None));
    }

    /// The same for work that becomes ready after `delay`: a retry, a schedule, the end of a short
    /// lease.
    pub fn announce_after<H: Hint>(&self, source: &str, hint: &H, delay: Duration) {
        self.service.roster.named(source, |here| here.wake_after(hint, delay));
        self.enqueue(Line::about(source, &hint.to_text(), Some(delay)));
    }

    /// Waits until every hint announced so far has been sent, for at most two seconds, and not at
    /// all once the database is closed. Without it, the work of a program that pushes and exits may
    /// wait for the other nodes' next heartbeat.
    pub async fn flush(&self) {
        let announced = self.pending().unsent().announced;
        let mut sent = self.pending().sent.subscribe();
        let all_sent = timeout(FLUSH_WITHIN, sent.wait_for(|sent| *sent >= announced));
        let _ = self.service.shared.closing.run_until_cancelled(all_sent).await;
    }

    /// Leaves the hint to the task, which the first one starts.
    fn enqueue(&self, hint: Line) {
        self.service.figures.announced();
        let mut unsent = self.pending().unsent();
        unsent.announced += 1;
        unsent.hints.add([hint]);
        drop(unsent);
        self.pending().arrived.notify_one();
        self.pending().started.get_or_init(|| {
            let (service, closing) = (Arc::clone(&self.service), self.service.shared.closing.clone());
            let end = closing.clone();
            let send = move || run(Arc::clone(&service), end.clone());
            self.service.shared.tasks.spawn(supervised("broadcaster", closing, send));
        });
    }

    fn pending(&self) -> &PendingHints {
        &self.service.pending_hints
    }
}

impl PendingHints {
    fn unsent(&self) -> MutexGuard<'_, Unsent> {
        self.unsent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn run(service: Arc<Service>, closing: CancellationToken) {
    let _ = closing.run_until_cancelled(send_for_ever(&service)).await;
}

async fn send_for_ever(service: &Service) {
    let mut connection: Option<Connection> = None;
    let mut pauses = RECONNECT;
    let mut budget = Budget::new();
    loop {
        service.pending_hints.arrived.notified().await;
        budget.spend().await;
        let (hints, announced) = {
            let mut unsent = service.pending_hints.unsent();
            (std::mem::take(&mut unsent.hints), unsent.announced)
        };
        match send(service, &mut connection, &hints).await {
            Ok(()) => {
                pauses.reset();
                service.pending_hints.sent.send_replace(announced);
            }
            Err(error) => {
                connection = None;
                let retry_in = pauses.next();
                warn_unless_away!(&error, %error, ?retry_in, "could not send hints to the other nodes, trying again");
                service.pending_hints.unsent().hints = HintSet::everything();
                service.pending_hints.arrived.notify_one();
                sleep(retry_in).await;
            }
        }
    }
}

async fn send(service: &Service, connection: &mut Option<Connection>, hints: &HintSet) -> Result<(), DatabaseError> {
    if hints.is_empty() {
        return Ok(());
    }
    let connection = match connection {
        Some(connection) if !connection.is_closed() => connection,
        _ => connection.insert(service.shared.connect(Purpose::HINTS).await?),
    };
    let node = &service.node;
    let listed: Vec<Line> = hints.iter().cloned().collect();
    let payloads = payloads(node.id, &listed, PAYLOADS_MAX);
    let silence = node.silence().as_secs_f64();
    let id = node.id.number();
    let params: [Param<'_>; 4] = [&node.channel, &payloads, &id, &silence];
    let sent = timeout(SEND_WITHIN, connection.execute(&BROADCAST, &params)).await;
    sent.unwrap_or_else(|_| {
        Err(DatabaseError::Timeout { doing: "a hint to the other nodes".to_owned(), cause: None })
    })?;
    service.figures.sent();
    Ok(())
}
