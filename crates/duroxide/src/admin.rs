//! duroxide's `ProviderAdmin`: what operators and gauges read.
//!
//! Owns no state. Promises that deletion and pruning are all or nothing, and that a turn under way
//! on a deleted instance can no longer be committed.

use async_trait::async_trait;
use duroxide::Event;
use duroxide::providers::{
    DeleteInstanceResult, ExecutionInfo, InstanceFilter, InstanceInfo, ProviderAdmin, ProviderError, PruneOptions,
    PruneResult, QueueDepths, SystemMetrics,
};
use tokio_postgres::Row;

use crate::nul;
use crate::number::{signed, unsigned};
use crate::provider::PostgresProvider;
use crate::statements::{
    COUNT_ALL, COUNT_WAITING, DELETE_INSTANCES, FIND_INSTANCES, LIST_CHILDREN, LIST_EXECUTIONS, LIST_INSTANCES,
    PRUNE_EXECUTIONS, READ_INSTANCE,
};

/// How many instances one bulk call takes by default.
const BULK_LIMIT: u32 = 1000;

/// Which instances a bulk call is for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Among {
    All,
    EndedRoots,
}

impl PostgresProvider {
    async fn names(&self, operation: &str, status: Option<&str>) -> Result<Vec<String>, ProviderError> {
        let rows = self.store().repeat(operation, &LIST_INSTANCES, &[&status]).await?;
        Ok(rows.iter().map(|row| row.get("instance_id")).collect())
    }

    async fn executions(&self, operation: &str, instance: &str, one: Option<u64>) -> Result<Vec<Row>, ProviderError> {
        let one = one.map(signed);
        self.store().repeat(operation, &LIST_EXECUTIONS, &[&instance, &one]).await
    }

    async fn instance(&self, operation: &str, instance: &str) -> Result<Row, ProviderError> {
        let rows = self.store().repeat(operation, &READ_INSTANCE, &[&instance]).await?;
        rows.into_iter().next().ok_or_else(|| missing(operation, instance))
    }

    async fn find(&self, operation: &str, filter: &InstanceFilter, among: Among) -> Result<Vec<String>, ProviderError> {
        let before = filter.completed_before.map(signed);
        let limit = i64::from(filter.limit.unwrap_or(BULK_LIMIT));
        let ended = among == Among::EndedRoots;
        let params: [reveille::database::Param<'_>; 4] = [&filter.instance_ids, &before, &limit, &ended];
        let rows = self.store().repeat(operation, &FIND_INSTANCES, &params).await?;
        Ok(rows.iter().map(|row| row.get("instance_id")).collect())
    }
}

#[async_trait]
impl ProviderAdmin for PostgresProvider {
    async fn list_instances(&self) -> Result<Vec<String>, ProviderError> {
        self.names("list_instances", None).await
    }

    async fn list_instances_by_status(&self, status: &str) -> Result<Vec<String>, ProviderError> {
        self.names("list_instances_by_status", Some(status)).await
    }

    async fn list_executions(&self, instance: &str) -> Result<Vec<u64>, ProviderError> {
        let rows = self.executions("list_executions", instance, None).await?;
        Ok(rows.iter().map(|row| unsigned(row.get("execution_id"))).collect())
    }

    async fn read_history_with_execution_id(&self, instance: &str, id: u64) -> Result<Vec<Event>, ProviderError> {
        self.events("read_history_with_execution_id", instance, Some(id)).await
    }

    async fn read_history(&self, instance: &str) -> Result<Vec<Event>, ProviderError> {
        self.events("read_history", instance, None).await
    }

    async fn latest_execution_id(&self, instance: &str) -> Result<u64, ProviderError> {
        let rows = self.executions("latest_execution_id", instance, None).await?;
        Ok(rows.last().map_or(1, |row| unsigned(row.get("execution_id"))))
    }

    async fn get_instance_info(&self, instance: &str) -> Result<InstanceInfo, ProviderError> {
        let row = self.instance("get_instance_info", instance).await?;
        let unknown = |text: Option<String>, word: &str| text.unwrap_or_else(|| word.to_owned());
        Ok(InstanceInfo {
            instance_id: instance.to_owned(),
            orchestration_name: row.get("name"),
            orchestration_version: unknown(row.get("version"), "unknown"),
            current_execution_id: unsigned(row.get("current_execution_id")),
            status: unknown(row.get("status"), "Unknown"),
            output: row.get::<_, Option<String>>("output").map(nul::read),
            created_at: unsigned(row.get("created_ms")),
            updated_at: unsigned(row.get("updated_ms")),
            parent_instance_id: row.get("parent_instance_id"),
        })
    }

    async fn get_execution_info(&self, instance: &str, execution_id: u64) -> Result<ExecutionInfo, ProviderError> {
        const OPERATION: &str = "get_execution_info";
        let rows = self.executions(OPERATION, instance, Some(execution_id)).await?;
        let row = rows.first().ok_or_else(|| missing(OPERATION, &format!("{instance}, execution {execution_id}")))?;
        Ok(ExecutionInfo {
            execution_id,
            status: row.get("status"),
            output: row.get::<_, Option<String>>("output").map(nul::read),
            started_at: unsigned(row.get("started_ms")),
            completed_at: row.get::<_, Option<i64>>("completed_ms").map(unsigned),
            event_count: count(row, "event_count"),
        })
    }

    async fn get_system_metrics(&self) -> Result<SystemMetrics, ProviderError> {
        let rows = self.store().repeat("get_system_metrics", &COUNT_ALL, &[]).await?;
        let number = |column: &str| rows.first().map_or(0, |row| unsigned(row.get(column)));
        Ok(SystemMetrics {
            total_instances: number("instances"),
            total_executions: number("executions"),
            running_instances: number("running"),
            completed_instances: number("completed"),
            failed_instances: number("failed"),
            total_events: number("events"),
        })
    }

    async fn get_queue_depths(&self) -> Result<QueueDepths, ProviderError> {
        let rows = self.store().repeat("get_queue_depths", &COUNT_WAITING, &[]).await?;
        let number = |column: &str| rows.first().map_or(0, |row| count(row, column));
        Ok(QueueDepths { orchestrator_queue: number("messages"), worker_queue: number("activities"), timer_queue: 0 })
    }

    async fn list_children(&self, instance_id: &str) -> Result<Vec<String>, ProviderError> {
        let rows = self.store().repeat("list_children", &LIST_CHILDREN, &[&instance_id]).await?;
        Ok(rows.iter().map(|row| row.get("instance_id")).collect())
    }

    async fn get_parent_id(&self, instance_id: &str) -> Result<Option<String>, ProviderError> {
        Ok(self.instance("get_parent_id", instance_id).await?.get("parent_instance_id"))
    }

    async fn delete_instances_atomic(
        &self,
        ids: &[String],
        force: bool,
    ) -> Result<DeleteInstanceResult, ProviderError> {
        const OPERATION: &str = "delete_instances_atomic";
        if ids.is_empty() {
            return Ok(DeleteInstanceResult::default());
        }
        let deleted = self.store().repeat(OPERATION, &DELETE_INSTANCES, &[&ids, &force]).await;
        for id in ids {
            self.read_ahead().forget(id);
        }
        let rows = deleted?;
        let Some(row) = rows.first() else { return Ok(DeleteInstanceResult::default()) };
        if let Some(running) = row.get::<_, Option<&str>>("running") {
            let why = format!("Instance {running} is still running: cancel it first, or delete it with force");
            return Err(ProviderError::permanent(OPERATION, why));
        }
        if let (Some(orphan), Some(parent)) =
            (row.get::<_, Option<&str>>("orphan"), row.get::<_, Option<&str>>("parent"))
        {
            let why = format!("Instance {parent} has a child {orphan} that is not to be deleted: read the tree again");
            return Err(ProviderError::permanent(OPERATION, why));
        }
        Ok(DeleteInstanceResult {
            instances_deleted: unsigned(row.get("instances")),
            executions_deleted: unsigned(row.get("executions")),
            events_deleted: unsigned(row.get("events")),
            queue_messages_deleted: unsigned(row.get("messages")),
        })
    }

    async fn delete_instance_bulk(&self, filter: InstanceFilter) -> Result<DeleteInstanceResult, ProviderError> {
        let mut total = DeleteInstanceResult::default();
        for root in self.find("delete_instance_bulk", &filter, Among::EndedRoots).await? {
            let tree = self.get_instance_tree(&root).await?;
            let deleted = self.delete_instances_atomic(&tree.all_ids, true).await?;
            total.instances_deleted += deleted.instances_deleted;
            total.executions_deleted += deleted.executions_deleted;
            total.events_deleted += deleted.events_deleted;
            total.queue_messages_deleted += deleted.queue_messages_deleted;
        }
        Ok(total)
    }

    async fn prune_executions(&self, instance_id: &str, options: PruneOptions) -> Result<PruneResult, ProviderError> {
        const OPERATION: &str = "prune_executions";
        let (keep, before) = (options.keep_last.map(i64::from), options.completed_before.map(signed));
        let rows = self.store().repeat(OPERATION, &PRUNE_EXECUTIONS, &[&instance_id, &keep, &before]).await?;
        let row = rows.first().ok_or_else(|| missing(OPERATION, instance_id))?;
        Ok(PruneResult {
            instances_processed: 1,
            executions_deleted: unsigned(row.get("executions")),
            events_deleted: unsigned(row.get("events")),
        })
    }

    async fn prune_executions_bulk(
        &self,
        filter: InstanceFilter,
        options: PruneOptions,
    ) -> Result<PruneResult, ProviderError> {
        let mut total = PruneResult::default();
        for instance in self.find("prune_executions_bulk", &filter, Among::All).await? {
            let pruned = self.prune_executions(&instance, options.clone()).await?;
            total.instances_processed += pruned.instances_processed;
            total.executions_deleted += pruned.executions_deleted;
            total.events_deleted += pruned.events_deleted;
        }
        Ok(total)
    }
}

fn missing(operation: &str, what: &str) -> ProviderError {
    ProviderError::permanent(operation, format!("Instance {what} not found"))
}

fn count(row: &Row, column: &str) -> usize {
    usize::try_from(row.get::<_, i64>(column)).unwrap_or(0)
}
