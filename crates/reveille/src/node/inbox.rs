//! Hints that arrived and have not woken their sources yet.
//!
//! The reader of the LISTEN connection puts them here and goes on at once: a listener that stops
//! reading holds back VACUUM for the whole database. A hint wakes immediately while hints are rare;
//! in a flood, forged or not, hints wake together, so that the number of claim rounds per second
//! stays bounded.
//!
//! Next: [`super::work_source`], which they wake.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use reveille_wake::Cause;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::Service;
use super::budget::Budget;
use super::figures::Figures;
use super::hint::{HintSet, Line};
use super::roster::Roster;

#[derive(Debug, Default)]
pub(super) struct Inbox {
    arrivals: Mutex<HintSet>,
    arrived: Notify,
}

/// Wakes for hints that arrive until the database closes. Begins with every key, because hints may
/// have been lost when this task panicked.
pub(super) async fn run(service: Arc<Service>, closing: CancellationToken) {
    service.roster.wake_all(Cause::Reconnected);
    let _ = closing.run_until_cancelled(service.inbox.wake(&service.roster)).await;
}

impl Inbox {
    /// Keeps the hints until they wake. Never waits.
    pub(super) fn put(&self, hints: Vec<Line>, figures: &Figures) {
        figures.received(hints.len());
        self.arrivals().add(hints);
        self.arrived.notify_one();
    }

    /// Wakes for ever. Safe to drop: hints that have not been taken out stay.
    pub(super) async fn wake(&self, roster: &Roster) {
        let mut budget = Budget::new();
        loop {
            self.arrived.notified().await;
            budget.spend().await;
            let hints = std::mem::take(&mut *self.arrivals());
            for hint in hints.iter() {
                wake(roster, hint);
            }
        }
    }

    fn arrivals(&self) -> MutexGuard<'_, HintSet> {
        self.arrivals.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn wake(roster: &Roster, line: &Line) {
    match line {
        Line::All => roster.wake_all(Cause::Notified),
        Line::Source(name) => roster.named(name, |source| source.wake_all(Cause::Notified)),
        Line::About { source, hint, delay: None } => roster.named(source, |it| it.wake_by_text(hint, Cause::Notified)),
        Line::About { source, hint, delay: Some(delay) } => {
            roster.named(source, |it| it.wake_by_text_after(hint, *delay));
        }
    }
}
