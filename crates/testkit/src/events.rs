//! What happened, in order, for tests to wait on.

use std::fmt::Debug;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;

/// How long a test waits for an event before it says what came instead.
const PATIENCE: Duration = Duration::from_secs(20);

/// A list that only grows. A reader sees the past too, so there is no moment to miss.
#[derive(Debug)]
pub struct Events<E> {
    list: Arc<Mutex<Vec<E>>>,
    length: watch::Sender<usize>,
}

impl<E> Clone for Events<E> {
    fn clone(&self) -> Self {
        Self { list: Arc::clone(&self.list), length: self.length.clone() }
    }
}

impl<E> Default for Events<E> {
    fn default() -> Self {
        Self { list: Arc::default(), length: watch::Sender::new(0) }
    }
}

impl<E: Clone + Debug> Events<E> {
    /// An empty list.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an event and wakes the readers that wait.
    pub fn record(&self, event: E) {
        let mut list = self.lock();
        list.push(event);
        self.length.send_replace(list.len());
    }

    /// The first event that `wanted` accepts, past or future.
    ///
    /// # Panics
    /// When none comes within 20 s; the message shows what did.
    pub async fn until(&self, wanted: impl FnMut(&E) -> bool) -> E {
        self.reader().until(wanted).await
    }

    /// A reader that starts at the beginning.
    pub fn reader(&self) -> Reader<E> {
        Reader { events: self.clone(), at: 0 }
    }

    /// A reader that starts after what has happened so far.
    pub fn reader_from_now(&self) -> Reader<E> {
        Reader { at: self.lock().len(), events: self.clone() }
    }

    /// Everything so far.
    pub fn all(&self) -> Vec<E> {
        self.lock().clone()
    }

    /// How many events so far `wanted` accepts.
    pub fn count(&self, mut wanted: impl FnMut(&E) -> bool) -> usize {
        self.lock().iter().filter(|event| wanted(event)).count()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<E>> {
        // A test that panicked while recording leaves a list that is still true.
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads a list once, in order.
#[derive(Debug)]
pub struct Reader<E> {
    events: Events<E>,
    at: usize,
}

impl<E: Clone + Debug> Reader<E> {
    /// The next event that `wanted` accepts; those before it are passed over for good.
    ///
    /// # Panics
    /// When none comes within 20 s; the message shows what did.
    pub async fn until(&mut self, mut wanted: impl FnMut(&E) -> bool) -> E {
        let mut grows = self.events.length.subscribe();
        let waited = tokio::time::timeout(PATIENCE, async {
            loop {
                grows.borrow_and_update();
                if let Some(event) = self.pass_to(&mut wanted) {
                    return event;
                }
                // The sender lives in `self.events`, so this cannot fail.
                let _ = grows.changed().await;
            }
        });
        let waited = waited.await;
        waited.unwrap_or_else(|_| panic!("waited {PATIENCE:?} for an event; there were {:#?}", self.events.all()))
    }

    fn pass_to(&mut self, wanted: &mut impl FnMut(&E) -> bool) -> Option<E> {
        let list = self.events.lock();
        let found = list[self.at..].iter().position(wanted);
        self.at = found.map_or(list.len(), |position| self.at + position + 1);
        found.map(|_| list[self.at - 1].clone())
    }
}
