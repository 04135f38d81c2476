//! One partition: messages in the order they came.

use std::collections::HashMap;

use reveille::messages::MessageId;

use super::GONE;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stored {
    pub(crate) id: MessageId,
    pub(crate) transaction_id: String,
    pub(crate) payload: Vec<u8>,
    /// Came back from the dead letters of this group; nobody else sees it.
    pub(crate) only: Option<u8>,
    pub(crate) deleted: bool,
}

/// What a foreign transaction pushed.
#[derive(Debug, Clone)]
pub(crate) struct Sent {
    pub(crate) id: MessageId,
    pub(crate) transaction_id: Option<String>,
    pub(crate) payload: Vec<u8>,
}

/// What must become of a push.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pushing {
    Stored(i64),
    Duplicate(MessageId),
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Log {
    pub(crate) messages: Vec<Stored>,
    /// Up to here nothing is given to anybody any more.
    pub(crate) purged: i64,
    seen: HashMap<String, MessageId>,
}

impl Log {
    pub(crate) fn newest(&self) -> i64 {
        i64::try_from(self.messages.len()).expect("a short history")
    }

    pub(crate) fn at(&self, seq: i64) -> Option<&Stored> {
        usize::try_from(seq - 1).ok().and_then(|at| self.messages.get(at))
    }

    /// As a group sees it.
    pub(crate) fn visible(&self, seq: i64, group: u8) -> Option<&Stored> {
        self.held(seq, group).filter(|_| seq > self.purged)
    }

    /// As the holder of a lease still sees it, whatever was purged meanwhile.
    pub(super) fn held(&self, seq: i64, group: u8) -> Option<&Stored> {
        self.at(seq).filter(|held| !held.deleted && held.only.is_none_or(|only| only == group))
    }

    /// What must be answered to a push, before its id is known.
    pub(crate) fn expects(&self, transaction_id: Option<&str>, remembers: bool) -> Pushing {
        let seen = transaction_id.filter(|_| remembers).and_then(|id| self.seen.get(id));
        seen.map_or(Pushing::Stored(self.newest() + 1), |first| Pushing::Duplicate(*first))
    }

    pub(crate) fn append(&mut self, id: MessageId, transaction_id: Option<&str>, payload: &[u8]) {
        if let Some(name) = transaction_id {
            self.seen.insert(name.to_owned(), id);
        }
        let transaction_id = transaction_id.map_or_else(|| id.to_string(), str::to_owned);
        self.messages.push(Stored { id, transaction_id, payload: payload.to_owned(), only: None, deleted: false });
    }

    pub(super) fn receive(&mut self, sent: &Sent, remembers: bool) {
        let name = sent.transaction_id.as_deref();
        if let Pushing::Stored(_) = self.expects(name, remembers) {
            self.append(sent.id, name, &sent.payload);
        }
    }

    pub(super) fn again(&mut self, seq: i64, group: u8) {
        let held = self.at(seq).cloned();
        self.messages.extend(held.map(|held| Stored { only: Some(group), deleted: false, ..held }));
    }

    /// Nobody is the group any more that these came back for.
    pub(super) fn forget_group(&mut self, group: u8) {
        for held in self.messages.iter_mut().filter(|held| held.only == Some(group)) {
            held.only = Some(GONE);
        }
    }

    pub(crate) fn delete(&mut self, seq: i64) {
        if let Some(held) = usize::try_from(seq - 1).ok().and_then(|at| self.messages.get_mut(at)) {
            held.deleted = true;
        }
    }

    /// The window of every transaction id is over.
    pub(crate) fn forget(&mut self) {
        self.seen.clear();
    }

    /// The message a consumer means by a transaction id: the first within what it has leased, else
    /// one it has settled.
    pub(super) fn find(&self, name: &str, committed: i64, through: i64) -> Option<i64> {
        let named = |seq: &i64| self.at(*seq).is_some_and(|held| held.transaction_id == name);
        (committed + 1..=through).find(named).or_else(|| (1..=committed).rev().find(named))
    }
}
