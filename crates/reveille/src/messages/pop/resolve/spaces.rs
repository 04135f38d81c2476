//! Remembers the keys of namespaces and tasks.
//!
//! A *space* is a namespace, a task, or a task within a namespace. Owns the keys of each space and
//! group that were last read, within a bound. Promises keys that the database would return again:
//! while the link is proven, every move of a queue into a space, out of it or to another priority
//! is announced, and keys from before that announcement are not used.
//!
//! Next: [`super::Resolver`].

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::messages::key::Key;
use crate::messages::name::GroupName;
use crate::messages::ready::MessageNotifier;

/// With more than this all are forgotten: each costs one statement to read again.
const SPACES_MAX: usize = 10_000;

/// A pop of the queues of a space, by a group.
#[derive(Debug, Clone, Copy)]
pub(super) struct SpacePop<'a> {
    pub(super) namespace: Option<&'a Arc<str>>,
    pub(super) task: Option<&'a Arc<str>>,
    pub(super) group: &'a GroupName,
}

/// The same, as it is remembered.
#[derive(Debug, PartialEq, Eq, Hash)]
struct SpaceAndGroup {
    namespace: Option<Arc<str>>,
    task: Option<Arc<str>>,
    group: GroupName,
}

#[derive(Debug, Default)]
pub(super) struct Spaces(Mutex<HashMap<SpaceAndGroup, SpaceKeys>>);

#[derive(Debug)]
struct SpaceKeys {
    /// The last one is that of the space itself.
    keys: Arc<[Key]>,
    /// The notifier's version of names before the keys were read.
    names_version: u64,
}

impl Spaces {
    pub(super) fn recall(&self, notifier: &MessageNotifier, pop: SpacePop<'_>) -> Option<Arc<[Key]>> {
        let spaces = self.lock();
        let SpaceKeys { keys, names_version } = spaces.get(&pop.into())?;
        let is_current = *names_version == notifier.names_version()
            && keys.last().is_some_and(|space| notifier.hub().is_known_empty(space));
        is_current.then(|| Arc::clone(keys))
    }

    pub(super) fn note(&self, pop: SpacePop<'_>, keys: &Arc<[Key]>, names_version: u64) {
        let mut spaces = self.lock();
        if spaces.len() >= SPACES_MAX {
            spaces.clear();
        }
        spaces.insert(pop.into(), SpaceKeys { keys: Arc::clone(keys), names_version });
    }

    pub(super) fn forget(&self, pop: SpacePop<'_>) {
        self.lock().remove(&pop.into());
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<SpaceAndGroup, SpaceKeys>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl From<SpacePop<'_>> for SpaceAndGroup {
    fn from(pop: SpacePop<'_>) -> Self {
        Self { namespace: pop.namespace.cloned(), task: pop.task.cloned(), group: pop.group.clone() }
    }
}
