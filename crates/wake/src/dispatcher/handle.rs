//! The caller's side of a dispatcher.
//!
//! Owns the way to make a demand. Promises that a demand it accepted is answered once.
//!
//! Next: [`crate::demand`].

use std::fmt;
use std::sync::Arc;

use super::options::DispatcherOptions;
use crate::clock;
use crate::demand::{Patience, Ticket};
use crate::desk::Desk;
use crate::hub::Hub;
use crate::link::Link;
use crate::observe::Event;
use crate::poll_mode::PollMode;
use crate::refused::Refused;
use crate::source::Source;

/// The keys of a dispatcher, counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct KeyCounts {
    /// Keys that have demands.
    pub demanded: usize,
    /// Keys in the claim round under way.
    pub in_flight: usize,
    /// Keys that fallback polling leaves alone for now, because they were found empty.
    pub backed_off: usize,
}

/// Makes demands of a running dispatcher. Clones are of the same dispatcher.
pub struct DispatcherHandle<S: Source> {
    desk: Arc<Desk<S>>,
    hub: Hub<S::Key>,
    options: DispatcherOptions,
}

impl<S: Source> DispatcherHandle<S> {
    pub(super) const fn new(desk: Arc<Desk<S>>, hub: Hub<S::Key>, options: DispatcherOptions) -> Self {
        Self { desk, hub, options }
    }

    /// Makes a demand for work of any of the keys, and puts it in line.
    pub fn request(
        &self,
        keys: impl Into<Arc<[S::Key]>>,
        request: S::Request,
        patience: Patience,
    ) -> Result<Ticket<S>, Refused> {
        let now = clock::now();
        let keys = keys.into();
        let patience = match patience {
            Patience::Until(at) if self.options.waits => {
                Patience::Until(at.min(clock::after(now, self.options.max_wait)))
            }
            Patience::Until(_) | Patience::Now => Patience::Now,
        };
        let accepted = if keys.is_empty() || keys.len() > DispatcherOptions::MAX_KEYS {
            Err(Refused::KeysOfDemand { limit: DispatcherOptions::MAX_KEYS })
        } else {
            self.desk.demands().request(keys, request, patience, now)
        };
        let (id, dispatcher) = accepted.inspect_err(|refused| self.hub.report(Event::Refused(*refused)))?;
        if let Some(dispatcher) = dispatcher {
            dispatcher.wake();
        }
        Ok(Ticket::new(Arc::clone(&self.desk), id))
    }

    /// The poll mode now.
    pub fn poll_mode(&self) -> PollMode {
        self.desk.demands().poll_mode
    }

    /// The health of the hint source.
    pub fn link(&self) -> Link {
        self.hub.link()
    }

    /// How many keys have demands, and what happens to them now.
    pub fn keys(&self) -> KeyCounts {
        let demands = self.desk.demands();
        KeyCounts { demanded: demands.keys(), in_flight: demands.in_flight, backed_off: demands.backed_off }
    }

    /// How many demands wait, including those that have an answer and did not take it yet.
    pub fn demands(&self) -> usize {
        self.desk.demands().len()
    }
}

impl<S: Source> Clone for DispatcherHandle<S> {
    fn clone(&self) -> Self {
        Self { desk: Arc::clone(&self.desk), hub: self.hub.clone(), options: self.options.clone() }
    }
}

impl<S: Source> fmt::Debug for DispatcherHandle<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DispatcherHandle").field("poll_mode", &self.poll_mode()).finish_non_exhaustive()
    }
}
