//! Holds the next activity for a slot that has just settled one, until the slot asks.
//!
//! A slot that has done one activity fetches the next at once, with the same key and request; a
//! relay has already taken that activity while it settled the one before. Owns how each activity in
//! progress was fetched, and the activities that wait for their slots. Promises that each activity
//! goes to one taker: a fetch with the same key and request, or the relay that gives it back
//! because no slot came.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::{ActivityKey, ActivityRequest, Task};

/// More activities in progress than this are forgotten: those that are never settled would
/// otherwise stay for ever.
const HANDED_MAX: usize = 4096;

/// How a slot fetches: which activities, and for how long.
pub(crate) type Fetch = (ActivityKey, ActivityRequest);

#[derive(Debug, Default)]
pub(crate) struct Shelf {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// By token.
    handed: HashMap<String, Fetch>,
    /// The oldest first; as many as there are slots between two activities.
    ready: Vec<(Fetch, Task)>,
}

impl Shelf {
    /// A slot that waits for activities got one.
    pub(crate) fn hand(&self, token: &str, fetch: Fetch) {
        let mut state = self.state();
        if state.handed.len() >= HANDED_MAX {
            state.handed.clear();
        }
        state.handed.insert(token.to_owned(), fetch);
    }

    /// The slot is done with the activity; how it will fetch next, if that is known.
    pub(crate) fn done(&self, token: &str) -> Option<Fetch> {
        self.state().handed.remove(token)
    }

    /// The next activity, for a slot that will fetch like this.
    pub(crate) fn put(&self, fetch: Fetch, task: Task) {
        self.state().ready.push((fetch, task));
    }

    /// A slot fetches.
    pub(crate) fn take(&self, fetch: &Fetch) -> Option<Task> {
        let mut state = self.state();
        let place = state.ready.iter().position(|(of, _)| of == fetch)?;
        Some(state.ready.remove(place).1)
    }

    /// No slot asked.
    pub(crate) fn take_back(&self, token: &str) -> Option<Task> {
        let mut state = self.state();
        let place = state.ready.iter().position(|(_, task)| task.token == token)?;
        Some(state.ready.remove(place).1)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use duroxide::providers::TagFilter;

    use super::*;
    use crate::read_ahead::Reading;

    fn fetch(seconds: u64) -> Fetch {
        let key = ActivityKey::of(None, &TagFilter::DefaultOnly).unwrap();
        (key, ActivityRequest { lock: Duration::from_secs(seconds), session: Duration::ZERO })
    }

    fn task(token: &str) -> Task {
        Task { token: token.to_owned(), text: String::new(), attempt: 1, events: None, reading: Reading::default() }
    }

    #[test]
    fn an_activity_goes_to_the_first_fetch_with_the_same_request_and_to_no_other() {
        let shelf = Shelf::default();
        shelf.put(fetch(30), task("a"));
        shelf.put(fetch(30), task("b"));

        assert!(shelf.take(&fetch(31)).is_none());
        assert_eq!(shelf.take(&fetch(30)).unwrap().token, "a");
        assert!(shelf.take_back("a").is_none(), "it has been taken");
        assert_eq!(shelf.take_back("b").unwrap().token, "b");
        assert!(shelf.take(&fetch(30)).is_none(), "it has been given back");
    }

    #[test]
    fn what_is_never_settled_does_not_pile_up() {
        let shelf = Shelf::default();
        for number in 0..=HANDED_MAX {
            shelf.hand(&number.to_string(), fetch(30));
        }

        assert!(shelf.state().handed.len() <= HANDED_MAX);
        assert_eq!(shelf.done(&HANDED_MAX.to_string()), Some(fetch(30)));
    }
}
