//! The sources of work that are registered, and what they all know of the link.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use reveille_wake::{Cause, Link};

use super::work_source::WorkSource;

/// A source and the number under which it was registered.
type Entry = (u64, Arc<dyn WorkSource>);

#[derive(Debug)]
pub(super) struct Roster {
    entries: RwLock<Vec<Entry>>,
    /// Grows with every change, so that the heartbeat knows when to compose itself anew.
    version: AtomicU64,
    link: Mutex<Link>,
}

impl Roster {
    pub(super) fn new() -> Self {
        let link = Mutex::new(Link::Connecting { attempts: 0 });
        Self { entries: RwLock::default(), version: AtomicU64::new(0), link }
    }

    /// Adds a source, which learns how the link is. Returns the number to remove it by.
    pub(super) fn add(&self, source: Arc<dyn WorkSource>) -> u64 {
        // Held throughout, so that a change of the link reaches the newcomer before or after, never not at all.
        let link = self.link.lock().unwrap_or_else(PoisonError::into_inner);
        source.set_link(*link);
        let number = self.version.fetch_add(1, Ordering::AcqRel);
        self.entries.write().unwrap_or_else(PoisonError::into_inner).push((number, source));
        number
    }

    pub(super) fn remove(&self, number: u64) {
        self.entries.write().unwrap_or_else(PoisonError::into_inner).retain(|(own, _)| *own != number);
        self.version.fetch_add(1, Ordering::AcqRel);
    }

    pub(super) fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    pub(super) fn all(&self) -> Vec<Arc<dyn WorkSource>> {
        let entries = self.entries.read().unwrap_or_else(PoisonError::into_inner);
        entries.iter().map(|(_, source)| Arc::clone(source)).collect()
    }

    /// Calls `ring` for every source of that name: two dispatchers of one kind may share a process.
    pub(super) fn named(&self, name: &str, ring: impl Fn(&dyn WorkSource)) {
        for source in self.all().iter().filter(|source| source.name() == name) {
            ring(source.as_ref());
        }
    }

    pub(super) fn ring_all(&self, cause: Cause) {
        self.all().iter().for_each(|source| source.ring(None, cause));
    }

    pub(super) fn set_link(&self, link: Link) {
        let mut known = self.link.lock().unwrap_or_else(PoisonError::into_inner);
        *known = link;
        self.all().iter().for_each(|source| source.set_link(link));
    }

    pub(super) fn link(&self) -> Link {
        *self.link.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
