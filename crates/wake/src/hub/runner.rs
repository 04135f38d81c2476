//! Sleeps until a key is due, and wakes it.
//!
//! Owns the one sleep behind all due times of a hub. Promises that an earlier due time shortens a
//! sleep that has begun, and that no key is woken early.
//!
//! Next: the watches of the key, as after [`Hub::wake`].

use std::future::{Future, poll_fn};
use std::task::Poll;
use std::time::Instant;

use super::entry::Woken;
use super::wakes::Wakes;
use super::{Hub, Key};
use crate::cause::Cause;
use crate::clock;
use crate::dues::Fired;

/// Wakes the keys of one hub at their due times. There is one per hub.
#[derive(Debug)]
#[must_use = "due times wake only while it runs"]
pub struct Runner<K: Key> {
    hub: Hub<K>,
}

impl<K: Key> Runner<K> {
    pub(super) const fn new(hub: Hub<K>) -> Self {
        Self { hub }
    }

    /// Runs until `shutdown` is ready. It may also be dropped at any time.
    pub async fn run(self, shutdown: impl Future<Output = ()>) {
        tokio::select! {
            biased;
            () = shutdown => {}
            () = self.wake_dues() => {}
        }
    }

    async fn wake_dues(&self) {
        loop {
            self.fire();
            let at = self.compute_sleep();
            match at {
                // After a sleep, long enough or shortened, the clock is read again.
                Some(at) => drop(tokio::time::timeout_at(clock::timer(at), self.hurried()).await),
                None => self.hurried().await,
            }
        }
    }

    /// Records until when it will sleep, so that a caller that adds an earlier due time knows to
    /// shorten the sleep.
    pub(super) fn compute_sleep(&self) -> Option<Instant> {
        let mut board = self.hub.board();
        board.runner_at = board.dues.next();
        board.runner_at
    }

    /// Wakes the keys that are due now.
    fn fire(&self) {
        let now = clock::now();
        let mut board = self.hub.board();
        let fired = board.dues.take(now);
        let mut fires: Vec<(Cause, Wakes)> = Vec::with_capacity(fired.len());
        for due in fired {
            let cause = due.cause();
            let woken = Woken { cause, since: now };
            fires.push(match due {
                Fired::Key(key, _) => (cause, board.wake(&key, woken, false)),
                Fired::Everything => (cause, board.wake_all(woken)),
            });
        }
        drop(board);
        for (cause, wakes) in fires {
            self.hub.woke(cause, wakes);
        }
    }

    /// Ready when the sleep has become too long.
    pub(super) async fn hurried(&self) {
        poll_fn(|context| {
            let mut board = self.hub.board();
            board.runner = Some(context.waker().clone());
            match (board.dues.next(), board.runner_at) {
                (Some(wanted), Some(at)) if wanted < at => Poll::Ready(()),
                (Some(_), None) => Poll::Ready(()),
                _ => Poll::Pending,
            }
        })
        .await;
    }
}
