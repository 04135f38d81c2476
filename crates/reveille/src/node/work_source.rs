//! A source of work: a table of messages, of jobs, of orchestrations, or one of your own.
//!
//! Owns the seam between the engine and the tables it wakes for. The engine knows no table: a
//! source has a name that is the same on every node, a hub in which consumers wait for its keys, a
//! survey for the heartbeat, and its own type of hint. Keys never become text; a hint does so only
//! on its way to other nodes.
//!
//! Next: [`super::hub_source`], the source for one hub and keys of one column; [`super::listener`],
//! which wakes sources.

use std::fmt::Debug;
use std::time::Duration;

use reveille_wake::{Cause, DueSource, Hub, Key, Link};
use tokio_postgres::types::{ToSql, Type};

use super::survey::Survey;

/// A source of work, as listener and heartbeat see it. [`HubSource`](super::HubSource) makes one
/// of a hub.
pub trait WorkSource: Debug + Send + Sync + 'static {
    /// What consumers wait for. Ordered, so that a heartbeat which cannot survey all keys goes on
    /// where it stopped.
    type Key: Key + Ord;
    /// What an announcement is about: a key, or something that concerns several.
    type Hint: Hint;

    /// The name of the source in hints: the same on every node. Letters, digits, `_` and `-`.
    fn name(&self) -> &str;

    /// The hub in which consumers wait for its keys.
    fn hub(&self) -> &Hub<Self::Key>;

    /// The statement by which the heartbeat finds ready and coming work of this source.
    fn survey(&self) -> &Survey;

    /// The keys as the parameters of the survey: arrays of the same length, one for each column of
    /// a key.
    fn columns(&self, keys: &[Self::Key]) -> Vec<Column>;

    /// Wake every key that the hint may be about; without a hint, every waited one.
    fn wake(&self, hint: Option<&Self::Hint>, cause: Cause);

    /// Wake every key that the hint may be about, after a delay that the writer of the row
    /// announced.
    fn wake_after(&self, hint: &Self::Hint, delay: Duration);

    /// The keys that are waited for.
    fn waited(&self) -> Vec<Self::Key> {
        self.hub().waited()
    }

    /// The survey found work under this key.
    fn wake_key(&self, key: &Self::Key, cause: Cause) {
        self.hub().wake(key, cause);
    }

    /// When the next work under this key is due, as the survey read it.
    fn next_due(&self, key: &Self::Key, delay: Option<Duration>) {
        self.hub().set_due(key.clone(), DueSource::Heartbeat, delay);
    }

    /// The state of the link has changed.
    fn set_link(&self, link: Link) {
        self.hub().set_link(link);
    }
}

/// What an announcement is about. Typed inside one process; text only in a notification to other
/// nodes.
pub trait Hint: Debug + Send + Sync + 'static {
    /// As other nodes read it. Text with spaces or line breaks, empty text and text over 512 bytes
    /// is announced as "every key of the source"; prefer ids.
    fn to_text(&self) -> String;

    /// Reads such a text. `None` for a text that is no hint, and then every key is woken: a
    /// notification is untrusted, but a later version may announce what this one cannot read.
    fn from_text(text: &str) -> Option<Self>
    where
        Self: Sized;
}

/// One column of the waited keys.
#[derive(Debug)]
pub struct Column {
    pub(super) name: &'static str,
    pub(super) array: Type,
    pub(super) values: Box<dyn ToSql + Send + Sync>,
}

impl Column {
    /// The values of all keys, for `{name}` in the survey: an array of PostgreSQL's type `array`.
    pub fn new<T: ToSql + Send + Sync + 'static>(name: &'static str, array: Type, values: Vec<T>) -> Self {
        Self { name, array, values: Box::new(values) }
    }
}
