//! What a batcher counts.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Counted by the batcher's task, read by anybody.
#[derive(Debug, Default)]
pub(super) struct Counts {
    batches: AtomicU64,
    items: AtomicU64,
    busy: AtomicBool,
}

/// What one batcher has done since this process began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct BatcherFigures {
    /// The name of the batcher.
    pub name: &'static str,
    /// Batches that ran: one statement each, or a few.
    pub batches: u64,
    /// Items in those batches: the more in a batch, the cheaper each.
    pub items: u64,
    /// Whether a batch is running.
    pub busy: bool,
}

impl Counts {
    pub(super) fn begin(&self, items: usize) {
        self.batches.fetch_add(1, Ordering::Relaxed);
        self.items.fetch_add(items as u64, Ordering::Relaxed);
        self.busy.store(true, Ordering::Relaxed);
    }

    pub(super) fn end(&self) {
        self.busy.store(false, Ordering::Relaxed);
    }

    pub(super) fn read(&self, name: &'static str) -> BatcherFigures {
        BatcherFigures {
            name,
            batches: self.batches.load(Ordering::Relaxed),
            items: self.items.load(Ordering::Relaxed),
            busy: self.busy.load(Ordering::Relaxed),
        }
    }
}
