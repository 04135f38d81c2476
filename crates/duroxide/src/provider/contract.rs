//! duroxide's `Provider`, method by method.

use std::collections::HashMap;
use std::time::Duration;

use async_trait::async_trait;
use duroxide::providers::{
    DispatcherCapabilityFilter, ExecutionMetadata, OrchestrationItem, Provider, ProviderAdmin, ProviderError,
    ScheduledActivityIdentifier, SessionFetchConfig, TagFilter, WorkItem,
};
use duroxide::{Event, EventKind, SystemStats};

use super::{PostgresProvider, status_of};
use crate::error::unreadable;
use crate::nul;
use crate::number::{seconds, signed, unsigned};
use crate::statements::{APPEND_HISTORY, CLEAN_SESSIONS, CUSTOM_STATUS, INSTANCE_STATS, READ_VALUES, RENEW_SESSIONS};
use crate::turns::columns::written;
use crate::turns::settle::Outcome;

#[async_trait]
impl Provider for PostgresProvider {
    fn name(&self) -> &'static str {
        "reveille-duroxide"
    }

    fn version(&self) -> &'static str {
        env!("CARGO_PKG_VERSION")
    }

    fn as_management_capability(&self) -> Option<&dyn ProviderAdmin> {
        Some(self)
    }

    async fn fetch_orchestration_item(
        &self,
        lock_timeout: Duration,
        poll_timeout: Duration,
        filter: Option<&DispatcherCapabilityFilter>,
    ) -> Result<Option<(OrchestrationItem, String, u32)>, ProviderError> {
        self.fetch_turn(lock_timeout, poll_timeout, filter).await
    }

    async fn ack_orchestration_item(
        &self,
        lock_token: &str,
        execution: u64,
        events: Vec<Event>,
        activities: Vec<WorkItem>,
        messages: Vec<WorkItem>,
        metadata: ExecutionMetadata,
        cancelled: Vec<ScheduledActivityIdentifier>,
    ) -> Result<(), ProviderError> {
        let outcome = Outcome { execution, events, activities, messages, metadata, cancelled };
        self.settle_turn(lock_token, outcome).await
    }

    async fn abandon_orchestration_item(
        &self,
        lock_token: &str,
        delay: Option<Duration>,
        ignore_attempt: bool,
    ) -> Result<(), ProviderError> {
        self.abandon_turn(lock_token, delay, ignore_attempt).await
    }

    async fn renew_orchestration_item_lock(&self, token: &str, extend_for: Duration) -> Result<(), ProviderError> {
        self.inner.turns.queue.renew(token, extend_for).await
    }

    async fn enqueue_for_orchestrator(&self, item: WorkItem, delay: Option<Duration>) -> Result<(), ProviderError> {
        self.send(&item, delay).await
    }

    async fn enqueue_for_worker(&self, item: WorkItem) -> Result<(), ProviderError> {
        let sent = self.inner.activities.queue.enqueue(&item).await;
        // Also when it failed: the answer may be lost and the activity there.
        self.inner.activities.wake().await;
        sent
    }

    async fn fetch_work_item(
        &self,
        lock_timeout: Duration,
        poll_timeout: Duration,
        session: Option<&SessionFetchConfig>,
        tag_filter: &TagFilter,
    ) -> Result<Option<(WorkItem, String, u32)>, ProviderError> {
        self.fetch_activity(lock_timeout, poll_timeout, session, tag_filter).await
    }

    async fn ack_work_item(&self, token: &str, completion: Option<WorkItem>) -> Result<(), ProviderError> {
        self.settle_activity(token, completion).await
    }

    async fn renew_work_item_lock(&self, token: &str, extend_for: Duration) -> Result<(), ProviderError> {
        self.inner.activities.queue.renew(token, extend_for).await
    }

    async fn abandon_work_item(
        &self,
        token: &str,
        delay: Option<Duration>,
        ignore_attempt: bool,
    ) -> Result<(), ProviderError> {
        let activities = &self.inner.activities;
        self.inner.shelf.done(token);
        activities.queue.abandon(token, delay, ignore_attempt).await?;
        match delay {
            Some(delay) if !delay.is_zero() => activities.wake_after(delay).await,
            _ => activities.wake().await,
        }
        Ok(())
    }

    async fn renew_session_lock(
        &self,
        owner_ids: &[&str],
        extend_for: Duration,
        idle_timeout: Duration,
    ) -> Result<usize, ProviderError> {
        const OPERATION: &str = "renew_session_lock";
        if owner_ids.is_empty() {
            return Ok(0);
        }
        let (owners, lock, idle) = (owner_ids.to_vec(), seconds(extend_for), seconds(idle_timeout));
        Ok(self.store().repeat(OPERATION, &RENEW_SESSIONS, &[&owners, &lock, &idle]).await?.len())
    }

    async fn cleanup_orphaned_sessions(&self, _idle_timeout: Duration) -> Result<usize, ProviderError> {
        Ok(self.store().repeat("cleanup_orphaned_sessions", &CLEAN_SESSIONS, &[]).await?.len())
    }

    async fn read(&self, instance: &str) -> Result<Vec<Event>, ProviderError> {
        self.events("read", instance, None).await
    }

    async fn read_with_execution(&self, instance: &str, execution_id: u64) -> Result<Vec<Event>, ProviderError> {
        self.events("read_with_execution", instance, Some(execution_id)).await
    }

    async fn append_with_execution(
        &self,
        instance: &str,
        execution_id: u64,
        new_events: Vec<Event>,
    ) -> Result<(), ProviderError> {
        const OPERATION: &str = "append_with_execution";
        let (ids, texts) = written(OPERATION, &new_events)?;
        let execution = signed(execution_id);
        self.store().once(OPERATION, &APPEND_HISTORY, &[&instance, &execution, &ids, &texts]).await.map(drop)
    }

    async fn get_custom_status(
        &self,
        instance: &str,
        last_seen_version: u64,
    ) -> Result<Option<(Option<String>, u64)>, ProviderError> {
        let status = match self.read_ahead().take_status(instance) {
            Some(status) => Some(status),
            None => {
                let rows = self.store().repeat("get_custom_status", &CUSTOM_STATUS, &[&instance]).await?;
                rows.first().and_then(status_of)
            }
        };
        Ok(status.filter(|(_, version)| *version > last_seen_version))
    }

    async fn get_kv_value(&self, instance: &str, key: &str) -> Result<Option<String>, ProviderError> {
        let key = Some(nul::stored(key));
        let rows = self.store().repeat("get_kv_value", &READ_VALUES, &[&instance, &key]).await?;
        Ok(rows.first().map(|row| nul::read(row.get("value"))))
    }

    async fn get_kv_all_values(&self, instance: &str) -> Result<HashMap<String, String>, ProviderError> {
        let rows = self.store().repeat("get_kv_all_values", &READ_VALUES, &[&instance, &None::<&str>]).await?;
        Ok(rows.iter().map(|row| (nul::read(row.get("key")), nul::read(row.get("value")))).collect())
    }

    async fn get_instance_stats(&self, instance: &str) -> Result<Option<SystemStats>, ProviderError> {
        const OPERATION: &str = "get_instance_stats";
        let rows = self.store().repeat(OPERATION, &INSTANCE_STATS, &[&instance]).await?;
        let Some(row) = rows.first() else { return Ok(None) };
        let first: Option<&str> = row.get("first_event");
        let first = first.map(serde_json::from_str::<Event>).transpose();
        let carried = match first.map_err(|error| unreadable(OPERATION, "event", &error))?.map(|event| event.kind) {
            Some(EventKind::OrchestrationStarted { carry_forward_events: Some(events), .. }) => events.len() as u64,
            _ => 0,
        };
        Ok(Some(SystemStats {
            history_event_count: unsigned(row.get("events")),
            history_size_bytes: unsigned(row.get("event_bytes")),
            queue_pending_count: carried,
            kv_user_key_count: unsigned(row.get("keys")),
            kv_total_value_bytes: unsigned(row.get("value_bytes")),
        }))
    }
}
