//! A source of work for one hub whose keys have one column.
//!
//! Next: `examples/own_table`, which uses it.

use std::time::Duration;

use reveille_wake::{Cause, DueSource, Hub, Key};
use tokio_postgres::types::Type;

use super::survey::Survey;
use super::work_source::{Column, Hint, WorkSource};

/// A source of work for one hub. Its survey names the waited keys `{keys}`, and a hint is about one
/// key.
#[derive(Debug)]
pub struct HubSource<K: ColumnKey> {
    name: String,
    survey: Survey,
    hub: Hub<K>,
}

/// A key of one column.
pub trait ColumnKey: Key + Ord + Hint {
    /// The keys as the parameter `{keys}` of the survey.
    fn column(keys: &[Self]) -> Column;
}

impl<K: ColumnKey> HubSource<K> {
    /// A source called `name` whose keys are waited for in `hub`; see [`Survey`] for the text.
    pub fn new(name: impl Into<String>, survey: impl Into<Survey>, hub: Hub<K>) -> Self {
        Self { name: name.into(), survey: survey.into(), hub }
    }
}

impl<K: ColumnKey> WorkSource for HubSource<K> {
    type Key = K;
    type Hint = K;

    fn name(&self) -> &str {
        &self.name
    }

    fn hub(&self) -> &Hub<K> {
        &self.hub
    }

    fn survey(&self) -> &Survey {
        &self.survey
    }

    fn columns(&self, keys: &[K]) -> Vec<Column> {
        vec![K::column(keys)]
    }

    fn wake(&self, key: Option<&K>, cause: Cause) {
        match key {
            Some(key) => self.hub.wake(key, cause),
            None => self.hub.wake_all(cause),
        }
    }

    fn wake_after(&self, key: &K, delay: Duration) {
        self.hub.wake_after(key.clone(), DueSource::Announced, delay);
    }
}

macro_rules! column_keys {
    ($($key:ty = $array:ident;)*) => {$(
        impl ColumnKey for $key {
            fn column(keys: &[Self]) -> Column {
                Column::new("keys", Type::$array, keys.to_vec())
            }
        }

        impl Hint for $key {
            fn to_text(&self) -> String {
                self.to_string()
            }

            fn from_text(text: &str) -> Option<Self> {
                text.parse().ok()
            }
        }
    )*};
}

column_keys! {
    String = TEXT_ARRAY;
    i64 = INT8_ARRAY;
}
