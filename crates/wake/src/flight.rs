//! One at a time per key, and nothing noted meanwhile is lost.
//!
//! Owns which keys have something running. Promises that a ring that meets a running look forces one more
//! (`Running` → `RunningDirty`), and that the guard cannot leak: however the work ends, by return, error, panic or a
//! dropped future, the key is free again. In seed 004 the success path alone released the group, and a lost connection
//! silenced it until restart.
//!
//! Next: whoever does the work; [`Flight::finish`] says whether to do it again.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use crate::hub::Key;
use crate::sync::Mutex;

/// What runs for a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Running {
    /// It runs, and nothing came since it began.
    Clean,
    /// It runs, and something came that it may have missed.
    Dirty,
}

type Again<K> = dyn Fn(&K) + Send + Sync;

/// The keys with something running. Clones share them.
#[derive(Clone)]
pub struct Flights<K: Key> {
    running: Arc<Mutex<HashMap<K, Running>>>,
    again: Arc<Again<K>>,
}

/// The answer to "may I begin?".
#[derive(Debug)]
pub enum Start<K: Key> {
    /// Yes; the key is yours until the guard goes.
    Go(Flight<K>),
    /// It runs already, and will run once more because you asked.
    Noted,
}

/// The right to work on a key.
#[derive(Debug)]
#[must_use = "dropping it frees the key"]
pub struct Flight<K: Key> {
    flights: Flights<K>,
    key: K,
    over: bool,
}

/// The answer to "am I done?".
#[derive(Debug)]
pub enum Finish<K: Key> {
    /// Yes, the key is free.
    Idle,
    /// No: something came meanwhile. The key is still yours.
    Again(Flight<K>),
}

impl<K: Key> Flights<K> {
    /// No key runs. `again` is called when a guard is dropped unfinished although something had come meanwhile: ring the
    /// key there.
    pub fn new(again: impl Fn(&K) + Send + Sync + 'static) -> Self {
        Self { running: Arc::default(), again: Arc::new(again) }
    }

    /// Begins work on `key`, or notes that it must be done once more.
    pub fn start(&self, key: K) -> Start<K> {
        let mut running = self.running.lock();
        if let Some(state) = running.get_mut(&key) {
            *state = Running::Dirty;
            return Start::Noted;
        }
        running.insert(key.clone(), Running::Clean);
        drop(running);
        Start::Go(Flight { flights: self.clone(), key, over: false })
    }

    /// How many keys have something running.
    pub fn len(&self) -> usize {
        self.running.lock().len()
    }

    /// Whether nothing runs.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<K: Key> Flight<K> {
    /// The key.
    pub const fn key(&self) -> &K {
        &self.key
    }

    /// Ends the work, unless something came that it may have missed.
    pub fn finish(mut self) -> Finish<K> {
        let mut running = self.flights.running.lock();
        match running.get_mut(&self.key) {
            Some(state @ Running::Dirty) => {
                *state = Running::Clean;
                drop(running);
                Finish::Again(self)
            }
            Some(Running::Clean) | None => {
                running.remove(&self.key);
                drop(running);
                self.over = true;
                Finish::Idle
            }
        }
    }
}

impl<K: Key> Drop for Flight<K> {
    fn drop(&mut self) {
        if self.over {
            return;
        }
        let was = self.flights.running.lock().remove(&self.key);
        if was == Some(Running::Dirty) {
            (self.flights.again)(&self.key);
        }
    }
}

impl<K: Key> fmt::Debug for Flights<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Flights").field("running", &*self.running.lock()).finish_non_exhaustive()
    }
}
