//! The provider, as duroxide's runtime and clients see it.
//!
//! Owns the two queues, what a fetch or a read may find without a statement (the shelf of relayed
//! activities, the answers read ahead), and the order in which all of it ends. Each method is one
//! call to a queue or to the store, and then the wake-ups for what its commit made ready. Promises
//! that everything that can make work visible is followed by a wake-up: a message, an activity, a
//! turn given back or committed, the end of a lock.
//!
//! Next: [`crate::turns`], [`crate::activities`], [`crate::work_queue`].

mod contract;
mod relay;

use std::sync::Arc;
use std::time::Duration;

use duroxide::Event;
use duroxide::providers::{
    DispatcherCapabilityFilter, OrchestrationItem, ProviderError, SessionFetchConfig, TagFilter, WorkItem,
};
use reveille::database::{Database, DatabaseError};
use reveille::service::Context;
use reveille_wake::Cause;
use tokio::time::Instant;
use tokio_util::task::TaskTracker;

use crate::activities::{Activities, ActivityKey, ActivityRequest, Shelf};
use crate::error::unreadable;
use crate::long_poll::LongPollConfig;
use crate::nul;
use crate::number::{seconds, signed, unsigned};
use crate::options::{PostgresProviderOptions, ProviderOpenError};
use crate::read_ahead::{ReadAhead, Status};
use crate::schema;
use crate::statements::{ENQUEUE_MESSAGE, READ_HISTORY};
use crate::store::Store;
use crate::token::TurnToken;
use crate::turns::item::Understood;
use crate::turns::settle::Outcome;
use crate::turns::{TurnKey, TurnRequest, Turns};
use crate::work_item::Message;
use crate::work_queue::WorkQueue;

/// How long messages wait whose instance will be started by a message that is not visible yet.
const UNSTARTED_PAUSE: Duration = Duration::from_secs(1);
/// How long an activity rests that cannot be read: by this version, perhaps by the next.
const UNREADABLE_PAUSE: Duration = Duration::from_secs(60);

/// A duroxide provider on PostgreSQL. Clones are the same provider.
#[derive(Debug, Clone)]
pub struct PostgresProvider {
    inner: Arc<Inner>,
}

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) store: Store,
    pub(crate) turns: Arc<WorkQueue<Turns>>,
    pub(crate) activities: Arc<WorkQueue<Activities>>,
    /// The next activities of slots that have just done one.
    shelf: Arc<Shelf>,
    /// Answers to the reads that are about to follow.
    read_ahead: Arc<ReadAhead>,
    context: Arc<Context>,
    /// Closes a database of the provider's own, last.
    closing: TaskTracker,
}

impl PostgresProvider {
    /// Opens or shares a database; see [`PostgresProviderOptions`].
    pub fn options() -> PostgresProviderOptions {
        PostgresProviderOptions::default()
    }

    /// A provider on a database of its own, in the schema `duroxide`. Fetches do not wait. As with
    /// `duroxide-pg`, the environment may limit the connections: `DUROXIDE_PG_POOL_MAX`.
    pub async fn new(database_url: &str) -> Result<Self, ProviderOpenError> {
        Self::new_with_schema(database_url, None).await
    }

    /// The same in a schema of the caller's choice.
    pub async fn new_with_schema(database_url: &str, schema_name: Option<&str>) -> Result<Self, ProviderOpenError> {
        Self::new_with_options(database_url, schema_name, LongPollConfig::default()).await
    }

    /// As [`new`](Self::new), with fetches that wait.
    pub async fn new_with_long_poll(database_url: &str) -> Result<Self, ProviderOpenError> {
        Self::new_with_long_poll_and_schema(database_url, None).await
    }

    /// The same in a schema of the caller's choice.
    pub async fn new_with_long_poll_and_schema(
        database_url: &str,
        schema_name: Option<&str>,
    ) -> Result<Self, ProviderOpenError> {
        Self::new_with_options(database_url, schema_name, LongPollConfig::on()).await
    }

    /// The same with a choice of how fetches wait.
    pub async fn new_with_options(
        database_url: &str,
        schema_name: Option<&str>,
        long_poll: LongPollConfig,
    ) -> Result<Self, ProviderOpenError> {
        let options = Self::options().url(database_url).long_poll(long_poll).pool_size_of_environment();
        let options = match schema_name {
            Some(name) => options.schema(name),
            None => options,
        };
        options.open().await
    }

    pub(crate) async fn start(database: &Database, config: LongPollConfig, owned: bool) -> Result<Self, DatabaseError> {
        database.migrate_from(&schema::SOURCE).await?;
        let (store, context, closing) =
            (Store { database: database.clone() }, Arc::new(Context::new(database)), TaskTracker::new());
        let turns = WorkQueue::new(Turns { store: store.clone() }, &context, config);
        let read_ahead = Arc::new(ReadAhead::default());
        let activities = Activities::new(store.clone(), Arc::clone(&read_ahead));
        let activities = WorkQueue::new(activities, &context, config);
        if owned {
            let (context, database) = (Arc::clone(&context), database.clone());
            closing.spawn(async move {
                context.end().cancelled().await;
                // The queues give back what they hold while they still have the database.
                context.close().await;
                database.close().await;
            });
        }
        let (turns, activities, shelf) = (Arc::new(turns), Arc::new(activities), Arc::default());
        Ok(Self { inner: Arc::new(Inner { store, turns, activities, shelf, read_ahead, context, closing }) })
    }

    /// The schema that holds this provider's tables, and nothing else.
    pub fn schema_name(&self) -> &str {
        self.inner.store.database.schema().as_str()
    }

    /// The database, with this provider's schema.
    pub fn database(&self) -> &Database {
        &self.inner.store.database
    }

    /// Ends waiting fetches and what runs behind them; a database of the provider's own is closed.
    /// Safe to call twice.
    pub async fn close(&self) {
        self.inner.context.close().await;
        self.inner.closing.close();
        self.inner.closing.wait().await;
    }

    async fn fetch_turn(
        &self,
        lock: Duration,
        wait: Duration,
        filter: Option<&DispatcherCapabilityFilter>,
    ) -> Result<Option<(OrchestrationItem, String, u32)>, ProviderError> {
        const OPERATION: &str = "fetch_orchestration_item";
        let Some(key) = TurnKey::of(filter) else { return Ok(None) };
        let turns = &self.inner.turns;
        let begun = Instant::now();
        loop {
            let left = wait.saturating_sub(begun.elapsed());
            let Some(turn) = turns.take(OPERATION, key.clone(), TurnRequest { lock }, left).await? else {
                return Ok(None);
            };
            let token = turn.token.to_string();
            match turn.understand() {
                Understood::Item(item) => return Ok(Some((*item, token, turn.attempt))),
                Understood::Unstarted => {
                    turns.queue.abandon(&token, Some(UNSTARTED_PAUSE), true).await?;
                    turns.wake_after(UNSTARTED_PAUSE).await;
                }
            }
        }
    }

    async fn settle_turn(&self, token: &str, outcome: Outcome) -> Result<(), ProviderError> {
        let Inner { turns, activities, read_ahead, .. } = &*self.inner;
        let instance = TurnToken::parse(token).map(|token| token.instance).unwrap_or_default();
        read_ahead.forget(&instance);
        let wakes = turns.wakes();
        let sent = turns.queue.settle(token, outcome).await;
        read_ahead.forget(&instance);
        let sent = sent?;
        if sent.activities {
            activities.wake().await;
        }
        if sent.messages {
            turns.wake().await;
        } else if turns.wakes() != wakes {
            // The lock of the turn hid what arrived during the commit. The statement saw what
            // arrived before, and what arrives later brings a wake-up of its own.
            turns.wake_here(Cause::Settled);
        }
        if let Some(delay) = sent.due {
            turns.wake_after(delay).await;
        }
        Ok(())
    }

    async fn abandon_turn(&self, token: &str, delay: Option<Duration>, uncounted: bool) -> Result<(), ProviderError> {
        let turns = &self.inner.turns;
        turns.queue.abandon(token, delay, uncounted).await?;
        turns.wake().await;
        if let Some(delay) = delay {
            turns.wake_after(delay).await;
        }
        Ok(())
    }

    async fn send(&self, item: &WorkItem, delay: Option<Duration>) -> Result<(), ProviderError> {
        const OPERATION: &str = "enqueue_for_orchestrator";
        let wrong = || ProviderError::permanent(OPERATION, "Invalid work item type");
        let message = Message::of(OPERATION, item)?.ok_or_else(wrong)?;
        let Message { instance, text, visible_at, is_start, is_event } = &message;
        // A delay that was asked for counts from now; a timer without one fires at its own time.
        let visible_at = if delay.is_some() { None } else { *visible_at };
        let delay = seconds(delay.unwrap_or_default());
        let params: [reveille::database::Param<'_>; 6] = [instance, text, &delay, &visible_at, is_start, is_event];
        let sent = self.inner.store.once(OPERATION, &ENQUEUE_MESSAGE, &params).await;
        if sent.is_err() {
            // The answer may be lost and the message there.
            self.inner.turns.wake().await;
        }
        match sent?.first().and_then(|row| row.get::<_, Option<f64>>("due_s")) {
            Some(seconds) if seconds > 0.0 => {
                self.inner.turns.wake_after(Duration::try_from_secs_f64(seconds).unwrap_or_default()).await;
            }
            _ => self.inner.turns.wake().await,
        }
        Ok(())
    }

    async fn fetch_activity(
        &self,
        lock: Duration,
        wait: Duration,
        session: Option<&SessionFetchConfig>,
        filter: &TagFilter,
    ) -> Result<Option<(WorkItem, String, u32)>, ProviderError> {
        const OPERATION: &str = "fetch_work_item";
        let Some(key) = ActivityKey::of(session, filter) else { return Ok(None) };
        let request = ActivityRequest { lock, session: session.map_or(Duration::ZERO, |session| session.lock_timeout) };
        let Inner { activities, shelf, read_ahead, .. } = &*self.inner;
        let fetch = (key, request);
        let task = match shelf.take(&fetch) {
            Some(task) => task,
            None => match activities.take(OPERATION, fetch.0.clone(), fetch.1.clone(), wait).await? {
                Some(task) => task,
                None => return Ok(None),
            },
        };
        match serde_json::from_str(&task.text) {
            Ok(item) => {
                // A caller that does not wait may not fetch again.
                if activities.waits() && !wait.is_zero() {
                    shelf.hand(&task.token, fetch);
                }
                if let (WorkItem::ActivityExecute { instance, .. }, Some(events)) = (&item, task.events) {
                    read_ahead.keep_history(task.reading, instance, events);
                }
                Ok(Some((item, task.token, task.attempt)))
            }
            Err(error) => {
                activities.queue.abandon(&task.token, Some(UNREADABLE_PAUSE), false).await?;
                Err(unreadable(OPERATION, "a work item", &error))
            }
        }
    }

    pub(crate) async fn events(
        &self,
        operation: &str,
        instance: &str,
        execution: Option<u64>,
    ) -> Result<Vec<Event>, ProviderError> {
        let read = |text: &str| serde_json::from_str(text).map_err(|error| unreadable(operation, "event", &error));
        if execution.is_none()
            && let Some(events) = self.inner.read_ahead.take_history(instance)
        {
            return events.iter().map(|event| read(event)).collect();
        }
        let execution = execution.map(signed);
        let reading = self.inner.read_ahead.begin();
        let rows = self.inner.store.repeat(operation, &READ_HISTORY, &[&instance, &execution]).await?;
        let status = rows.last().and_then(status_of).unwrap_or_default();
        self.inner.read_ahead.keep_status(reading, instance, status);
        let texts = rows.iter().filter_map(|row| row.get::<_, Option<&str>>("event"));
        texts.map(read).collect()
    }

    pub(crate) fn read_ahead(&self) -> &ReadAhead {
        &self.inner.read_ahead
    }

    pub(crate) fn store(&self) -> &Store {
        &self.inner.store
    }
}

/// The custom status that a row brings.
pub(crate) fn status_of(row: &tokio_postgres::Row) -> Option<Status> {
    let version: Option<i64> = row.get("custom_status_version");
    version.map(|version| (row.get::<_, Option<String>>("custom_status").map(nul::read), unsigned(version)))
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.context.abandon();
    }
}
