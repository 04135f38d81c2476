//! Who waits for what, and which keys were woken.
//!
//! Owns the waiters and the due times of one service in one process. Promises that from the moment
//! a key is armed no wake is lost, whatever is dropped, cancelled or fails; that no due time wakes
//! early; and that wakes cost no memory. Knows no database: its callers decide what to wake, and
//! claim.
//!
//! Next: [`Watch`] for a dispatcher that waits for many keys, [`Armed`] for a loop that waits for
//! one.

mod armed;
mod board;
mod entry;
mod keep;
#[cfg(all(test, not(shuttle)))]
mod model;
mod options;
#[cfg(all(test, shuttle))]
mod races;
mod runner;
mod wakes;
mod watch;

use std::fmt::{self, Debug};
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch as channel;

pub use armed::{Armed, Claim, Waited};
use board::Board;
pub use entry::Stretch;
use entry::Woken;
pub use options::HubOptions;
pub use runner::Runner;
use wakes::Wakes;
pub use watch::{Watch, WokenKey};

use crate::cause::Cause;
use crate::clock;
use crate::dues::DueSource;
use crate::link::Link;
use crate::observe::{Event, SharedObserver};
use crate::refused::Refused;
use crate::sync::{Mutex, MutexGuard};

/// What a consumer waits for. Make it a type of your own, never a joined string: `("a", "b/c")` and
/// `("a/b", "c")` differ.
///
/// Everything that decides which rows a waiter may take belongs in its key. Otherwise an empty
/// claim of one waiter would wrongly show that there is nothing for another.
pub trait Key: Clone + Eq + Hash + Debug + Send + Sync + 'static {}

impl<T: Clone + Eq + Hash + Debug + Send + Sync + 'static> Key for T {}

/// Where waiters and wakes meet. Clones are the same hub.
pub struct Hub<K: Key> {
    inner: Arc<Inner<K>>,
}

struct Inner<K> {
    board: Mutex<Board<K>>,
    link: channel::Sender<Link>,
    observer: SharedObserver,
}

impl<K: Key> Hub<K> {
    /// A hub, and the [`Runner`] that wakes keys at their due times: run it in a task of its own.
    pub fn new(options: HubOptions) -> (Self, Runner<K>) {
        let observer = options.observer.clone();
        let link = channel::Sender::new(Link::Connecting { attempts: 0 });
        let hub = Self { inner: Arc::new(Inner { board: Mutex::new(Board::new(options)), link, observer }) };
        (hub.clone(), Runner::new(hub))
    }

    /// Wakes all waiters of the key. Call it after the commit.
    pub fn wake(&self, key: &K, cause: Cause) {
        self.wake_one(key, cause, false);
    }

    /// Like [`wake`](Self::wake), for a caller that has announced to the source where the work is.
    /// As long as all wakes of a key are of this kind, the source may search the announced places
    /// alone: see [`Stretch`].
    pub fn wake_announced(&self, key: &K, cause: Cause) {
        self.wake_one(key, cause, true);
    }

    /// Wakes every key that is waited for, and forgets which keys were known to be empty.
    pub fn wake_all(&self, cause: Cause) {
        let wakes = self.board().wake_all(Woken { cause, since: clock::now() });
        self.woke(cause, wakes);
    }

    /// Wakes the key after `delay`. Its other due times stay. For delays that are announced: by the
    /// writer of a row, by the holder of a lease.
    pub fn wake_after(&self, key: K, source: DueSource, delay: Duration) {
        self.change_dues(|board| {
            let at = clock::after(clock::now(), delay.saturating_add(board.options.grace));
            board.dues.add(key, source, at);
        });
    }

    /// Replaces the due times that `source` gave the key: the next one is `delay` from now, or
    /// there is none. For what a claim round or a heartbeat read.
    pub fn set_due(&self, key: K, source: DueSource, delay: Option<Duration>) {
        self.change_dues(|board| {
            let grace = board.options.grace;
            let at = delay.map(|delay| clock::after(clock::now(), delay.saturating_add(grace)));
            board.dues.replace(key, source, at);
        });
    }

    /// Begins to wait for the key: from here no wake is lost.
    pub fn arm(&self, key: K) -> Result<Armed<K>, Refused> {
        Armed::new(self.clone(), key)
    }

    /// Waits for many keys at once, as a dispatcher does.
    pub fn watch(&self) -> Watch<K> {
        Watch::new(self.clone())
    }

    /// Sets the health of the hint source. When it becomes proven, every key that is waited for is
    /// woken, because hints may have been missed before. Empty claims are trusted only from then
    /// on.
    pub fn set_link(&self, link: Link) {
        let now = clock::now();
        let mut board = self.board();
        let before = std::mem::replace(&mut board.link, link);
        let mut wakes = Wakes::default();
        match (before.is_proven(), link.is_proven()) {
            (false, true) => wakes = board.begin_trust(now),
            (true, false) => board.end_trust(),
            (false, false) | (true, true) => {}
        }
        drop(board);
        if before == link {
            return;
        }
        self.publish_link();
        if link.is_proven() && !before.is_proven() {
            self.woke(Cause::Reconnected, wakes);
        }
        self.report(Event::Link(link));
    }

    /// The health of the hint source.
    pub fn link(&self) -> Link {
        self.board().link
    }

    /// A receiver of every change of the link.
    pub fn follow_link(&self) -> channel::Receiver<Link> {
        self.inner.link.subscribe()
    }

    /// Whether the key was claimed from and found empty since its last wake, under a proven link.
    pub fn is_known_empty(&self, key: &K) -> bool {
        self.board().is_known_empty(key)
    }

    /// Forgets that the key was found empty, so that the next waiter claims. A key that has waiters
    /// stays as it is; the answer is whether it had none.
    pub fn forget(&self, key: &K) -> bool {
        self.board().forget_unwaited(key)
    }

    /// Forgets every key that has no waiters, as [`forget`](Self::forget) does.
    pub fn forget_unwaited(&self) {
        self.board().forget_all_unwaited();
    }

    /// The keys that have waiters, for a heartbeat that reads their state.
    pub fn waited(&self) -> Vec<K> {
        self.board().waited()
    }

    /// How many waiters exist.
    pub fn waiters(&self) -> usize {
        self.board().waiters
    }

    /// How many keys are known, including those that outlive their waiters.
    pub fn keys(&self) -> usize {
        self.board().keys()
    }

    /// How many due times are to come.
    pub fn dues(&self) -> usize {
        self.board().dues.len()
    }

    /// Publishes the link as it is now, not as the caller set it: of two callers, the later one to
    /// publish may have been the earlier one to set it.
    fn publish_link(&self) {
        self.inner.link.send_if_modified(|seen| {
            let link = self.link();
            std::mem::replace(seen, link) != link
        });
    }

    fn change_dues(&self, change: impl FnOnce(&mut Board<K>)) {
        let mut board = self.board();
        change(&mut board);
        let runner = board.hurry_runner();
        drop(board);
        if let Some(runner) = runner {
            runner.wake();
        }
    }

    fn wake_one(&self, key: &K, cause: Cause, announced: bool) {
        let wakes = self.board().wake(key, Woken { cause, since: clock::now() }, announced);
        self.woke(cause, wakes);
    }

    fn woke(&self, cause: Cause, wakes: Wakes) {
        self.report(Event::Woken { cause, woken: wakes.count });
        wakes.wake();
    }

    pub(crate) fn board(&self) -> MutexGuard<'_, Board<K>> {
        self.inner.board.lock()
    }

    pub(crate) fn report(&self, event: Event) {
        self.inner.observer.report(event);
    }
}

impl<K: Key> Clone for Hub<K> {
    fn clone(&self) -> Self {
        Self { inner: Arc::clone(&self.inner) }
    }
}

impl<K: Key> Debug for Hub<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let board = self.board();
        f.debug_struct("Hub")
            .field("keys", &board.keys())
            .field("waiters", &board.waiters)
            .field("dues", &board.dues.len())
            .finish_non_exhaustive()
    }
}
