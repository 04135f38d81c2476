//! What pops of namespaces and tasks last resolved to.
//!
//! Owns the keys of each space (a namespace, a task, or both) and group, within a bound. Promises
//! keys that the database would answer with again: while the link is proven, every move of a queue
//! into a space, out of it or to another priority is announced, and the keys from before are not
//! used.
//!
//! Next: [`super::Resolver`].

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::messages::key::Key;
use crate::messages::name::GroupName;
use crate::messages::ready::MessageNotifier;

/// With more than this all are forgotten: each costs one statement to find again.
const SPACES_MAX: usize = 10_000;

/// A pop of the queues of a space, by a group.
#[derive(Debug, Clone, Copy)]
pub(super) struct SpacePop<'a> {
    pub(super) namespace: Option<&'a Arc<str>>,
    pub(super) task: Option<&'a Arc<str>>,
    pub(super) group: &'a GroupName,
}

/// Namespace, task and group.
type Owned = (Option<Arc<str>>, Option<Arc<str>>, GroupName);

#[derive(Debug, Default)]
pub(super) struct Spaces(Mutex<HashMap<Owned, Seen>>);

#[derive(Debug)]
struct Seen {
    /// The last one is the space itself.
    keys: Arc<[Key]>,
    /// How many announcements about names there were before the database was asked.
    heard: u64,
}

impl Spaces {
    pub(super) fn recall(&self, notifier: &MessageNotifier, pop: SpacePop<'_>) -> Option<Arc<[Key]>> {
        let seen = self.seen();
        let Seen { keys, .. } = seen.get(&owned(pop)).filter(|seen| seen.heard == notifier.heard())?;
        keys.last().is_some_and(|space| notifier.hub().is_known_empty(space)).then(|| Arc::clone(keys))
    }

    pub(super) fn note(&self, pop: SpacePop<'_>, keys: &Arc<[Key]>, heard: u64) {
        let mut seen = self.seen();
        if seen.len() >= SPACES_MAX {
            seen.clear();
        }
        seen.insert(owned(pop), Seen { keys: Arc::clone(keys), heard });
    }

    pub(super) fn forget(&self, pop: SpacePop<'_>) {
        self.seen().remove(&owned(pop));
    }

    fn seen(&self) -> MutexGuard<'_, HashMap<Owned, Seen>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn owned(pop: SpacePop<'_>) -> Owned {
    (pop.namespace.cloned(), pop.task.cloned(), pop.group.clone())
}
