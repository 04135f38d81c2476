//! The sources of work that are registered, and the state of the link that each one is given.
//!
//! Promises that each source ends up with the present state of the link, and that no code of a
//! source or an observer runs under a lock of ours: it may ask for the link, register, or announce.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Instant;

use reveille_wake::{Cause, Link};

use super::erased::AnySource;

/// The number under which a source was registered.
pub(super) type SourceNumber = u64;

/// A source and its number.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) number: SourceNumber,
    pub(super) source: Arc<dyn AnySource>,
}

#[derive(Debug)]
pub(super) struct Roster {
    entries: RwLock<Vec<Entry>>,
    numbers: AtomicU64,
    known: Mutex<Known>,
}

#[derive(Debug)]
struct Known {
    link: Link,
    /// Sources whose survey fails, and since when. No heartbeat finds a hint they missed, so they
    /// must poll.
    unsurveyed: BTreeMap<SourceNumber, Instant>,
}

impl Roster {
    pub(super) fn new() -> Self {
        let known = Known { link: Link::Connecting { attempts: 0 }, unsurveyed: BTreeMap::new() };
        Self { entries: RwLock::default(), numbers: AtomicU64::new(0), known: Mutex::new(known) }
    }

    /// Adds a source and gives it the state of the link. Returns the number to remove it by.
    pub(super) fn add(&self, source: Arc<dyn AnySource>) -> SourceNumber {
        let number = self.numbers.fetch_add(1, Ordering::Relaxed);
        let entry = Entry { number, source };
        self.entries.write().unwrap_or_else(PoisonError::into_inner).push(entry.clone());
        self.pass_link(&entry);
        number
    }

    pub(super) fn remove(&self, number: SourceNumber) {
        self.entries.write().unwrap_or_else(PoisonError::into_inner).retain(|entry| entry.number != number);
        self.known().unsurveyed.remove(&number);
    }

    pub(super) fn entries(&self) -> Vec<Entry> {
        self.entries.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Calls `wake` for every source of that name: two dispatchers of one kind may share a process.
    pub(super) fn named(&self, name: &str, wake: impl Fn(&dyn AnySource)) {
        for Entry { source, .. } in self.entries().iter().filter(|entry| entry.source.name() == name) {
            wake(source.as_ref());
        }
    }

    pub(super) fn wake_all(&self, cause: Cause) {
        self.entries().iter().for_each(|entry| entry.source.wake_all(cause));
    }

    pub(super) fn set_link(&self, link: Link) {
        self.known().link = link;
        self.entries().iter().for_each(|entry| self.pass_link(entry));
    }

    pub(super) fn link(&self) -> Link {
        self.known().link
    }

    /// The heartbeat could not survey this source, or can again.
    pub(super) fn set_surveyed(&self, entry: &Entry, surveyed: bool, now: Instant) {
        let mut known = self.known();
        if surveyed {
            known.unsurveyed.remove(&entry.number);
        } else {
            known.unsurveyed.entry(entry.number).or_insert(now);
        }
        drop(known);
        self.pass_link(entry);
    }

    /// Gives a source the state of the link. Of two callers at once, the later may have read the
    /// earlier state, so each reads the state again afterwards.
    fn pass_link(&self, entry: &Entry) {
        loop {
            let passed = self.known().link_of(entry.number);
            entry.source.set_link(passed);
            if self.known().link_of(entry.number) == passed {
                return;
            }
        }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    fn link_of(&self, number: SourceNumber) -> Link {
        match self.unsurveyed.get(&number) {
            Some(since) if self.link.is_proven() => Link::Stalled { since: *since },
            Some(_) | None => self.link,
        }
    }
}
