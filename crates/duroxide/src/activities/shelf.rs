//! Activities for slots that are about to ask.
//!
//! A slot that has done one activity asks for the next at once, and in the same way. Owns what each
//! activity in hand was asked for with, and the next ones, which were taken while the ones before
//! were settled. Promises that each goes to one taker: a fetch that asks alike, or whoever gives it
//! back because none came.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::{ActivityKey, ActivityRequest, Task};

/// More activities in hand than this are forgotten: those that are never settled would otherwise
/// stay for ever.
const HANDED_MAX: usize = 4096;

/// How an activity is asked for.
pub(crate) type WaitingDemand = (ActivityKey, ActivityRequest);

#[derive(Debug, Default)]
pub(crate) struct Shelf {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// By token.
    handed: HashMap<String, WaitingDemand>,
    /// The oldest first; as many as there are slots between two activities.
    ready: Vec<(WaitingDemand, Task)>,
}

impl Shelf {
    /// A slot that waits for activities got one.
    pub(crate) fn hand(&self, token: &str, asked: WaitingDemand) {
        let mut state = self.state();
        if state.handed.len() >= HANDED_MAX {
            state.handed.clear();
        }
        state.handed.insert(token.to_owned(), asked);
    }

    /// The slot has done with it; how it will ask next, if that is known.
    pub(crate) fn done(&self, token: &str) -> Option<WaitingDemand> {
        self.state().handed.remove(token)
    }

    /// The next one, for a slot that will ask like this.
    pub(crate) fn put(&self, asked: WaitingDemand, task: Task) {
        self.state().ready.push((asked, task));
    }

    /// A slot asks.
    pub(crate) fn take(&self, asked: &WaitingDemand) -> Option<Task> {
        let mut state = self.state();
        let place = state.ready.iter().position(|(of, _)| of == asked)?;
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

    fn asked(seconds: u64) -> WaitingDemand {
        let key = ActivityKey::of(None, &TagFilter::DefaultOnly).unwrap();
        (key, ActivityRequest { lock: Duration::from_secs(seconds), session: Duration::ZERO })
    }

    fn task(token: &str) -> Task {
        Task { token: token.to_owned(), text: String::new(), attempt: 1, events: None, begun: 0 }
    }

    #[test]
    fn an_activity_goes_to_the_first_who_asks_alike_and_to_nobody_else() {
        let shelf = Shelf::default();
        shelf.put(asked(30), task("a"));
        shelf.put(asked(30), task("b"));

        assert!(shelf.take(&asked(31)).is_none());
        assert_eq!(shelf.take(&asked(30)).unwrap().token, "a");
        assert!(shelf.take_back("a").is_none(), "it has been taken");
        assert_eq!(shelf.take_back("b").unwrap().token, "b");
        assert!(shelf.take(&asked(30)).is_none(), "it has been given back");
    }

    #[test]
    fn what_is_never_settled_does_not_pile_up() {
        let shelf = Shelf::default();
        for number in 0..=HANDED_MAX {
            shelf.hand(&number.to_string(), asked(30));
        }

        assert!(shelf.state().handed.len() <= HANDED_MAX);
        assert_eq!(shelf.done(&HANDED_MAX.to_string()), Some(asked(30)));
    }
}
