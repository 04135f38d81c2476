//! The sources of work that are registered, and what they know of the link.
//!
//! Promises that each source ends up knowing the link as it is, and that nobody's code (a source,
//! an observer behind it) runs under a lock of ours: it may ask for the link, register, or
//! announce.

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
    /// Sources whose survey fails, and since when. A hint lost to them is found by no heartbeat, so
    /// that they must watch.
    unsurveyed: BTreeMap<SourceNumber, Instant>,
}

impl Roster {
    pub(super) fn new() -> Self {
        let known = Known { link: Link::Connecting { attempts: 0 }, unsurveyed: BTreeMap::new() };
        Self { entries: RwLock::default(), numbers: AtomicU64::new(0), known: Mutex::new(known) }
    }

    /// Adds a source, which learns how the link is. Returns the number to remove it by.
    pub(super) fn add(&self, source: Arc<dyn AnySource>) -> SourceNumber {
        let number = self.numbers.fetch_add(1, Ordering::Relaxed);
        let entry = Entry { number, source };
        self.entries.write().unwrap_or_else(PoisonError::into_inner).push(entry.clone());
        self.tell_link(&entry);
        number
    }

    pub(super) fn remove(&self, number: SourceNumber) {
        self.entries.write().unwrap_or_else(PoisonError::into_inner).retain(|entry| entry.number != number);
        self.known().unsurveyed.remove(&number);
    }

    pub(super) fn entries(&self) -> Vec<Entry> {
        self.entries.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Calls `ring` for every source of that name: two dispatchers of one kind may share a process.
    pub(super) fn named(&self, name: &str, ring: impl Fn(&dyn AnySource)) {
        for Entry { source, .. } in self.entries().iter().filter(|entry| entry.source.name() == name) {
            ring(source.as_ref());
        }
    }

    pub(super) fn wake_all(&self, cause: Cause) {
        self.entries().iter().for_each(|entry| entry.source.wake_all(cause));
    }

    pub(super) fn set_link(&self, link: Link) {
        self.known().link = link;
        self.entries().iter().for_each(|entry| self.tell_link(entry));
    }

    pub(super) fn link(&self) -> Link {
        self.known().link
    }

    /// The heartbeat could not ask about this source, or can again.
    pub(super) fn set_surveyed(&self, entry: &Entry, surveyed: bool, now: Instant) {
        let mut known = self.known();
        if surveyed {
            known.unsurveyed.remove(&entry.number);
        } else {
            known.unsurveyed.entry(entry.number).or_insert(now);
        }
        drop(known);
        self.tell_link(entry);
    }

    /// Of two who tell, the later may have read the earlier link; so each looks again after it has
    /// told.
    fn tell_link(&self, entry: &Entry) {
        loop {
            let told = self.known().link_of(entry.number);
            entry.source.set_link(told);
            if self.known().link_of(entry.number) == told {
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
