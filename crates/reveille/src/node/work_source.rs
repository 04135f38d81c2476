//! Where work can be: a table of messages, of jobs, of orchestrations, or somebody's own.
//!
//! Owns the seam between the engine and what it wakes for. The engine knows no table: each source has a name that is the
//! same on every node, a *survey* that the heartbeat asks for it, and a way to be rung.
//!
//! Next: [`super::listener`].

use std::fmt::Debug;
use std::time::Duration;

use reveille_wake::{Cause, DueSource, Hub, Key, Link};

/// A source of work, as listener and heartbeat see it. [`HubSource`] is one for any hub.
pub trait WorkSource: Debug + Send + Sync + 'static {
    /// Its name in hints: the same on every node. Letters, digits, `_` and `-`.
    fn name(&self) -> &str;

    /// What the heartbeat asks about this source, as the text of a `select` with the columns `key text` and
    /// `due_s double precision`: the seconds, by the database's clock, until the key's next row is ready; negative for how
    /// long it has been ready. `{keys}` stands for the waited keys (`text[]`), `{horizon}` for how many seconds ahead to
    /// look, `{schema}` for the schema. Keys with neither ready nor coming work are left out. Must be cheap: it is the
    /// whole idle load.
    fn survey(&self) -> &str;

    /// The keys somebody waits for, as hints spell them.
    fn waited(&self) -> Vec<String>;

    /// Look at this key, or at every waited one.
    fn ring(&self, key: Option<&str>, cause: Cause);

    /// Look at this key after a delay, because whoever wrote the row said so.
    fn ring_after(&self, key: &str, delay: Duration);

    /// The survey's word on the next due of a waited key.
    fn next_due(&self, key: &str, delay: Option<Duration>);

    /// How the link is.
    fn set_link(&self, link: Link);
}

/// A key that can be written in a hint.
pub trait HintKey: Key {
    /// As other nodes read it. Keys with spaces or line breaks, empty ones and those over 512 bytes are announced as
    /// "every key of the source"; prefer ids.
    fn to_hint(&self) -> String;

    /// The other way round. `None` for what is no key: hints are untrusted.
    fn from_hint(text: &str) -> Option<Self>;
}

impl HintKey for String {
    fn to_hint(&self) -> String {
        self.clone()
    }

    fn from_hint(text: &str) -> Option<Self> {
        Some(text.to_owned())
    }
}

impl HintKey for i64 {
    fn to_hint(&self) -> String {
        self.to_string()
    }

    fn from_hint(text: &str) -> Option<Self> {
        text.parse().ok()
    }
}

/// The source that rings one hub.
#[derive(Debug)]
pub struct HubSource<K: HintKey> {
    name: String,
    survey: String,
    hub: Hub<K>,
}

impl<K: HintKey> HubSource<K> {
    /// A source called `name` whose keys are waited for in `hub`; see [`WorkSource::survey`] for the text.
    pub fn new(name: impl Into<String>, survey: impl Into<String>, hub: Hub<K>) -> Self {
        Self { name: name.into(), survey: survey.into(), hub }
    }
}

impl<K: HintKey> WorkSource for HubSource<K> {
    fn name(&self) -> &str {
        &self.name
    }

    fn survey(&self) -> &str {
        &self.survey
    }

    fn waited(&self) -> Vec<String> {
        self.hub.waited().iter().map(HintKey::to_hint).collect()
    }

    fn ring(&self, key: Option<&str>, cause: Cause) {
        match key {
            None => self.hub.ring_all(cause),
            Some(text) => {
                if let Some(key) = K::from_hint(text) {
                    self.hub.ring(&key, cause);
                }
            }
        }
    }

    fn ring_after(&self, key: &str, delay: Duration) {
        if let Some(key) = K::from_hint(key) {
            self.hub.ring_after(key, DueSource::Announced, delay);
        }
    }

    fn next_due(&self, key: &str, delay: Option<Duration>) {
        if let Some(key) = K::from_hint(key) {
            self.hub.set_due(key, DueSource::Heartbeat, delay);
        }
    }

    fn set_link(&self, link: Link) {
        self.hub.set_link(link);
    }
}
