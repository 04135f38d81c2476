//! A call with several items: taken apart for the batchers, and answered in the order of the call.
//!
//! Next: [`super::portion`], which sends a part.

use super::entry::Entry;
use super::item::Pushed;
use crate::messages::error::MessagesError;

/// Some entries of a call, each with its position in the call.
#[derive(Default)]
pub(super) struct Part {
    pub(super) positions: Vec<usize>,
    pub(super) entries: Vec<Entry>,
}

impl Part {
    pub(super) fn with_capacity(items: usize) -> Self {
        Self { positions: Vec::with_capacity(items), entries: Vec::with_capacity(items) }
    }

    pub(super) fn add(&mut self, position: usize, entry: Entry) {
        self.positions.push(position);
        self.entries.push(entry);
    }
}

/// The answers to a call, in the order of its items.
pub(super) struct Answers(Vec<Option<Result<Pushed, MessagesError>>>);

impl Answers {
    /// No item of the call has an answer yet.
    pub(super) fn none(items: usize) -> Self {
        Self(std::iter::repeat_with(|| None).take(items).collect())
    }

    pub(super) fn set(&mut self, position: usize, answer: Result<Pushed, MessagesError>) {
        self.0[position] = Some(answer);
    }

    /// The answers to the items at these positions.
    pub(super) fn fill(
        &mut self,
        positions: Vec<usize>,
        answers: impl IntoIterator<Item = Result<Pushed, MessagesError>>,
    ) {
        for (position, answer) in positions.into_iter().zip(answers) {
            self.set(position, answer);
        }
    }

    /// Every item has its answer. A batcher answers all that it was sent, unless it has ended.
    pub(super) fn all(self) -> Vec<Result<Pushed, MessagesError>> {
        self.0.into_iter().map(|answer| answer.unwrap_or(Err(MessagesError::Closed))).collect()
    }
}
