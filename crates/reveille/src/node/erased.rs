//! Sources of work of any type, side by side.
//!
//! Owns the object-safe form of a [`WorkSource`]: every source has it, and each method restores the
//! types. A hint of this process arrives as a value, a hint of another node as text.
//!
//! Next: [`super::roster`], which keeps them; [`super::heartbeat`], which surveys them.

use std::any::Any;
use std::collections::HashMap;
use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use reveille_wake::{Cause, Link};

use super::survey::Survey;
use super::work_source::{Column, Hint, WorkSource};

/// Work that has been ready for longer than this was announced by no node; younger work may have
/// its hint on the way.
const UNANNOUNCED_AFTER_S: f64 = 1.0;

/// A source of any type.
pub(super) trait AnySource: Debug + Send + Sync {
    fn name(&self) -> &str;

    fn survey(&self) -> &Survey;

    fn set_link(&self, link: Link);

    fn wake_all(&self, cause: Cause);

    /// A hint of this process. A value of another type than the source's own is about every key.
    fn wake(&self, hint: &dyn Any, cause: Cause);

    fn wake_after(&self, hint: &dyn Any, delay: Duration);

    /// A hint of another node.
    fn wake_by_text(&self, hint: &str, cause: Cause);

    fn wake_by_text_after(&self, hint: &str, delay: Duration);

    /// The waited keys, at most so many. If there are more, those that follow the last key
    /// surveyed, which moves on.
    fn waited(self: Arc<Self>, most: usize, last: &mut Option<AnyKey>) -> Box<dyn AnyKeys>;
}

/// A key of any source.
pub(super) type AnyKey = Box<dyn Any + Send + Sync>;

/// Waited keys of one source, to survey.
pub(super) trait AnyKeys: Send + Sync {
    fn len(&self) -> usize;

    fn columns(&self, some: Range<usize>) -> Vec<Column>;

    /// Wakes those of these keys that are ready, and notes when the others are due. `found` has
    /// what the survey found: the seconds until a key is due, by its number among these, from 1.
    fn act_on(&self, some: Range<usize>, found: &HashMap<i64, f64>);
}

impl<S: WorkSource> AnySource for S {
    fn name(&self) -> &str {
        WorkSource::name(self)
    }

    fn survey(&self) -> &Survey {
        WorkSource::survey(self)
    }

    fn set_link(&self, link: Link) {
        WorkSource::set_link(self, link);
    }

    fn wake_all(&self, cause: Cause) {
        WorkSource::wake(self, None, cause);
    }

    fn wake(&self, hint: &dyn Any, cause: Cause) {
        WorkSource::wake(self, hint.downcast_ref(), cause);
    }

    fn wake_after(&self, hint: &dyn Any, delay: Duration) {
        match hint.downcast_ref() {
            Some(hint) => WorkSource::wake_after(self, hint, delay),
            // The claim round reads when the work is due.
            None => WorkSource::wake(self, None, Cause::Due),
        }
    }

    fn wake_by_text(&self, hint: &str, cause: Cause) {
        WorkSource::wake(self, S::Hint::from_text(hint).as_ref(), cause);
    }

    fn wake_by_text_after(&self, hint: &str, delay: Duration) {
        match S::Hint::from_text(hint) {
            Some(hint) => WorkSource::wake_after(self, &hint, delay),
            None => WorkSource::wake(self, None, Cause::Notified),
        }
    }

    fn waited(self: Arc<Self>, most: usize, last: &mut Option<AnyKey>) -> Box<dyn AnyKeys> {
        let mut keys = WorkSource::waited(&*self);
        if keys.len() > most {
            keys.sort_unstable();
            let before: Option<&S::Key> = last.as_ref().and_then(|last| last.downcast_ref());
            let surveyed = before.map_or(0, |before| keys.partition_point(|key| key <= before));
            let next = surveyed % keys.len();
            keys.rotate_left(next);
            keys.truncate(most);
            *last = keys.last().map(|key| Box::new(key.clone()) as AnyKey);
        } else {
            *last = None;
        }
        Box::new(Keys { source: self, keys })
    }
}

struct Keys<S: WorkSource> {
    source: Arc<S>,
    keys: Vec<S::Key>,
}

impl<S: WorkSource> AnyKeys for Keys<S> {
    fn len(&self) -> usize {
        self.keys.len()
    }

    fn columns(&self, some: Range<usize>) -> Vec<Column> {
        self.source.columns(&self.keys[some])
    }

    fn act_on(&self, some: Range<usize>, found: &HashMap<i64, f64>) {
        for (ordinal, key) in (1..).zip(&self.keys[some]) {
            let due_s = found.get(&ordinal).copied();
            self.source.next_due(key, due_s.filter(|due_s| *due_s > 0.0).map(seconds));
            match due_s {
                Some(due_s) if due_s <= -UNANNOUNCED_AFTER_S => self.source.wake_key(key, Cause::Heartbeat),
                Some(due_s) if due_s <= 0.0 => self.source.wake_key(key, Cause::Due),
                Some(_) | None => {}
            }
        }
    }
}

fn seconds(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
}
