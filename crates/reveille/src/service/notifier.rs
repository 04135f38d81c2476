//! Announces committed work of one source, through the broadcaster: in this process at once, and to
//! other nodes.
//!
//! Promises that every source of the same name and type in this process is woken with the value
//! itself, before the broadcaster makes text of it for other nodes; that of several leases of one
//! hint only the soonest end is announced, once; and that a program which only produces does not
//! exit before its hints have left. A service without notifications wakes its own source only.
//!
//! Next: [`crate::node::Broadcaster`], then [`super::claims`].

use std::collections::HashMap;
use std::fmt;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use reveille_wake::{Cause, Link};
use tokio::time::Instant;

use super::context::Context;
use crate::node::{Broadcaster, Registration, WorkSource};

/// Lease ends that are remembered; a forgotten one is announced once more.
const LEASE_ENDS_MAX: usize = 10_000;

/// Announces committed work of one source.
pub struct Notifier<W: WorkSource> {
    context: Arc<Context>,
    source: Arc<W>,
    /// `None` when notifications are off.
    broadcaster: Option<Broadcaster>,
    /// When a caller that only produces last waited until the hints were sent.
    flushed_at: Mutex<Option<Instant>>,
    lease_ends: Mutex<LeaseEnds<W::Hint>>,
}

impl<W: WorkSource> Notifier<W>
where
    W::Hint: Clone + Eq + Hash,
{
    /// Announces to this process and to other nodes.
    pub fn new(context: &Arc<Context>, source: &Arc<W>) -> Self {
        let broadcaster = Some(context.database().broadcaster());
        Self { broadcaster, ..Self::only_here(context, source) }
    }

    /// Wakes this source and nothing else, because notifications are off.
    pub fn only_here(context: &Arc<Context>, source: &Arc<W>) -> Self {
        let (context, source) = (Arc::clone(context), Arc::clone(source));
        Self { context, source, broadcaster: None, flushed_at: Mutex::default(), lease_ends: Mutex::default() }
    }

    /// Announces that there may be work now.
    pub fn announce(&self, hint: &W::Hint, cause: Cause) {
        match &self.broadcaster {
            Some(broadcaster) => broadcaster.announce(self.source.name(), hint, cause),
            None => self.source.wake(Some(hint), cause),
        }
    }

    /// Announces that there will be work after `delay`: a schedule, a retry.
    pub fn announce_after(&self, hint: &W::Hint, delay: Duration) {
        match &self.broadcaster {
            Some(broadcaster) => broadcaster.announce_after(self.source.name(), hint, delay),
            None => self.source.wake_after(hint, delay),
        }
    }

    /// Announces the end of a lease that was just made: if its holder dies, others must claim then.
    /// One announcement at a time is enough for a hint, because the claim round at that time reads
    /// the next end.
    pub fn leased(&self, hint: &W::Hint, lease: Duration) {
        let announces = self.lease_ends.lock().unwrap_or_else(PoisonError::into_inner).announces(hint, lease);
        if announces {
            self.announce_after(hint, lease);
        }
    }

    /// Waits until every hint has been sent.
    pub async fn flush(&self) {
        if let Some(broadcaster) = &self.broadcaster {
            broadcaster.flush().await;
        }
    }

    /// Waits until every hint has been sent, if this process only produces: it may exit right
    /// after.
    pub async fn flush_if_alone(&self) {
        if !self.context.serves() {
            self.flush().await;
        }
    }

    /// The same at most once in `interval`: if announcements follow each other quickly, a later
    /// flush waits instead.
    pub async fn flush_if_alone_every(&self, interval: Duration) {
        if !self.context.serves() && self.flush_is_due(interval) {
            self.flush().await;
        }
    }

    fn flush_is_due(&self, interval: Duration) -> bool {
        let now = Instant::now();
        let mut last = self.flushed_at.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = last.is_none_or(|last| now.duration_since(last) > interval);
        if is_due {
            *last = Some(now);
        }
        is_due
    }

    /// From here on hints and heartbeats wake the source. Without notifications neither does, since
    /// a heartbeat proves its link by a notification to itself.
    pub(super) fn register(&self) -> Option<Registration> {
        if self.broadcaster.is_some() {
            return Some(self.context.database().register(Arc::clone(&self.source)));
        }
        self.source.set_link(Link::Off);
        None
    }
}

impl<W: WorkSource> Notifier<W> {
    /// What is woken.
    pub fn source(&self) -> &Arc<W> {
        &self.source
    }

    pub(super) fn context(&self) -> &Context {
        &self.context
    }
}

impl<W: WorkSource> fmt::Debug for Notifier<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Notifier").field("source", &self.source).finish_non_exhaustive()
    }
}

/// The lease ends that were announced, one for each hint.
struct LeaseEnds<H> {
    ends: HashMap<H, Instant>,
}

impl<H> Default for LeaseEnds<H> {
    fn default() -> Self {
        Self { ends: HashMap::new() }
    }
}

impl<H: Clone + Eq + Hash> LeaseEnds<H> {
    /// Whether the end of this lease must be announced: not if an earlier end is still to come.
    fn announces(&mut self, hint: &H, lease: Duration) -> bool {
        let now = Instant::now();
        let until = now.checked_add(lease);
        let earlier = |at: &Instant| *at > now && until.is_none_or(|until| *at <= until);
        if self.ends.get(hint).is_some_and(earlier) {
            return false;
        }
        if self.ends.len() >= LEASE_ENDS_MAX {
            self.ends.retain(|_, at| *at > now);
        }
        if self.ends.len() >= LEASE_ENDS_MAX {
            self.ends.clear();
        }
        self.ends.extend(until.map(|until| (hint.clone(), until)));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[tokio::test(start_paused = true)]
    async fn one_end_of_a_lease_is_announced_at_a_time_unless_another_ends_sooner() {
        let mut ends = LeaseEnds::default();
        let announced = [10, 10, 5, 10].map(|lease| ends.announces(&"mail", seconds(lease)));

        assert_eq!(announced, [true, false, true, false]);
        assert!(ends.announces(&"other", seconds(10)), "each hint has its own");
        tokio::time::advance(seconds(6)).await;
        assert!(ends.announces(&"mail", seconds(10)));
    }

    #[tokio::test(start_paused = true)]
    async fn ends_that_are_over_make_room_and_the_others_only_when_there_is_none() {
        let mut ends = LeaseEnds::default();
        for hint in 0..LEASE_ENDS_MAX {
            assert!(ends.announces(&hint, seconds(if hint == 0 { 60 } else { 1 })));
        }

        tokio::time::advance(seconds(2)).await;
        assert!(ends.announces(&LEASE_ENDS_MAX, seconds(1)));

        assert_eq!(ends.ends.len(), 2);
        assert!(!ends.announces(&0, seconds(60)), "it is still to come");
    }
}
