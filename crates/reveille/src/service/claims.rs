//! How a service claims for all its demands: hub, dispatcher and registration.
//!
//! Promises that all three start with the first demand, once: a program that only produces has
//! neither a LISTEN connection nor any of these tasks. The hub's runner and the dispatcher end with
//! the service.
//!
//! Next: [`reveille_wake::Dispatcher`], and the source of the service.

use std::fmt;
use std::hash::Hash;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use reveille_wake::{Dispatcher, DispatcherHandle, DispatcherOptions, Runner, Source};

use super::notifier::Notifier;
use crate::node::{Registration, WorkSource};

/// Starts the claims of a service with its first demand.
pub struct Claims<W: WorkSource, S: Source<Key = W::Key>> {
    notifier: Arc<Notifier<W>>,
    /// Until the first demand starts it.
    runner: Mutex<Option<Runner<W::Key>>>,
    started: OnceLock<Started<S>>,
}

struct Started<S: Source> {
    handle: DispatcherHandle<S>,
    _registration: Option<Registration>,
}

impl<W: WorkSource, S: Source<Key = W::Key>> Claims<W, S>
where
    W::Hint: Clone + Eq + Hash,
{
    /// For the source that the notifier wakes; `runner` is that of its hub.
    pub fn new(notifier: &Arc<Notifier<W>>, runner: Runner<W::Key>) -> Self {
        Self { notifier: Arc::clone(notifier), runner: Mutex::new(Some(runner)), started: OnceLock::new() }
    }

    /// Where demands are made. The first call starts the dispatcher, with what `make` returns.
    pub fn handle(&self, make: impl FnOnce() -> (S, DispatcherOptions)) -> &DispatcherHandle<S> {
        let start = || {
            let (source, options) = make();
            self.start(source, options)
        };
        &self.started.get_or_init(start).handle
    }

    /// Where demands are made, if one has been.
    pub fn started(&self) -> Option<&DispatcherHandle<S>> {
        self.started.get().map(|started| &started.handle)
    }

    fn start(&self, source: S, options: DispatcherOptions) -> Started<S> {
        let context = self.notifier.context();
        context.serve();
        let (dispatcher, handle) = Dispatcher::new(self.notifier.source().hub(), source, options);
        let registration = self.notifier.register();
        let runner = self.runner.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(runner) = runner {
            context.spawn(runner.run(context.end().clone().cancelled_owned()));
        }
        context.spawn(dispatcher.run(context.end().clone().cancelled_owned()));
        Started { handle, _registration: registration }
    }
}

impl<W: WorkSource, S: Source<Key = W::Key>> fmt::Debug for Claims<W, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Claims").field("started", &self.started.get().is_some()).finish_non_exhaustive()
    }
}
