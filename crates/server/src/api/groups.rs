//! `/api/v1/consumer-groups`: how far groups are, where they begin, and how to delete them.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::response::Response;
use reveille::messages::{
    Began, GroupDescription, GroupName, GroupState, PartitionLag, PartitionName, QueueName, SeekTo, Subscriptions,
};
use reveille::moment;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::answer;
use super::dead::page;
use crate::context::Context;
use crate::problem::Problem;
use crate::request_body::Whole;
use crate::wire::json::{parse, slip};
use crate::wire::moment::moment_of;
use crate::wire::names::{self, Names};
use crate::wire::query::Query;

/// Groups in one answer.
const GROUPS: u32 = 1000;
/// Partitions in one answer.
const PARTITIONS_MAX: u32 = 10_000;
/// How many seconds behind counts as lagging, by default.
const LAGGING: u32 = 3600;

/// Ordered by queue and name, one page at a time; by default the first page.
pub(super) async fn list(State(context): State<Arc<Context>>, query: Query) -> Result<Response, Problem> {
    let queue = query.owned("queue").map(names::queue).transpose()?;
    let page = page(&query, GROUPS)?;
    let groups = context.messages.groups_page(queue.as_ref(), None, page.in_messages()?).await?;
    Ok(answer::ok(&groups.iter().map(spelt).collect::<Vec<_>>()))
}

pub(super) async fn lagging(State(context): State<Arc<Context>>, query: Query) -> Result<Response, Problem> {
    let behind = Duration::from_secs(query.count("minLagSeconds")?.unwrap_or(LAGGING).into());
    let limit = query.count("limit")?.unwrap_or(PARTITIONS_MAX).min(PARTITIONS_MAX);
    let rows = context.messages.group_partitions(None, None, behind, limit).await?;
    let lagging = rows.iter().filter(|row| row.lag > 0).map(|row| {
        let mut entry = place(row);
        entry["consumerGroup"] = row.group.as_str().into();
        entry["queueName"] = row.queue.as_str().into();
        entry
    });
    Ok(answer::ok(&lagging.collect::<Vec<_>>()))
}

/// Queen keeps these figures in tables and recounts them on this request; ours are counted whenever
/// they are read.
pub(super) async fn refresh() -> Response {
    answer::ok(&json!({ "success": true }))
}

/// Partition by partition, under the names of the queues.
pub(super) async fn one(State(context): State<Arc<Context>>, Names(group): Names<String>) -> Result<Response, Problem> {
    let group = group_of(group)?;
    let rows = context.messages.group_partitions(None, Some(&group), Duration::ZERO, PARTITIONS_MAX).await?;
    let mut queues: Map<String, Value> = Map::new();
    for row in &rows {
        let queue = queues.entry(row.queue.as_str()).or_insert_with(|| json!({ "partitions": [] }));
        if let Some(partitions) = queue["partitions"].as_array_mut() {
            partitions.push(place(row));
        }
    }
    Ok(answer::ok(&queues))
}

pub(super) async fn delete(
    State(context): State<Arc<Context>>,
    Names(group): Names<String>,
    query: Query,
) -> Result<Response, Problem> {
    forget(&context, &group_of(group)?, None, &query).await
}

pub(super) async fn delete_from(
    State(context): State<Arc<Context>>,
    Names((group, queue)): Names<(String, String)>,
    query: Query,
) -> Result<Response, Problem> {
    forget(&context, &group_of(group)?, Some(&names::queue(queue)?), &query).await
}

/// The metadata is deleted too unless the query keeps it, as with Queen.
async fn forget(
    context: &Context,
    group: &GroupName,
    queue: Option<&QueueName>,
    query: &Query,
) -> Result<Response, Problem> {
    let keep = query.flag("deleteMetadata")? == Some(false);
    let how = if keep { Subscriptions::Keep } else { Subscriptions::Forget };
    let deleted = context.messages.delete_group(queue, group, how).await?;
    Ok(answer::ok(&json!({
        "success": true,
        "consumerGroup": group.as_str(),
        "queueName": queue.map(QueueName::as_str),
        "deletedPartitions": deleted.partitions,
        "metadataDeleted": !keep,
    })))
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct NewBeginning {
    subscription_timestamp: Option<String>,
}

pub(super) async fn subscription(
    State(context): State<Arc<Context>>,
    Names(group): Names<String>,
    Whole(body): Whole,
) -> Result<Response, Problem> {
    let group = group_of(group)?;
    let beginning: NewBeginning = parse(&body)?;
    let text = beginning.subscription_timestamp.ok_or_else(|| Problem::invalid("subscriptionTimestamp is required"))?;
    let rows = context.messages.change_subscription(&group, moment_of("subscriptionTimestamp", &text)?).await?;
    Ok(answer::ok(&json!({
        "success": true, "consumerGroup": group.as_str(), "newTimestamp": text, "rowsUpdated": rows,
    })))
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Target {
    to_end: Option<bool>,
    to_beginning: Option<bool>,
    timestamp: Option<String>,
}

impl Target {
    fn parse(body: &[u8]) -> Result<Self, Problem> {
        let target = parse(body)?;
        // An empty target moves a partition to its end, so a misspelt field must not count as
        // empty.
        slip::refuse(body, &["toEnd", "toBeginning", "timestamp"])?;
        Ok(target)
    }

    fn read(&self) -> Result<Option<SeekTo>, Problem> {
        match (self.to_end, self.to_beginning, &self.timestamp) {
            (Some(true), ..) => Ok(Some(SeekTo::End)),
            (_, Some(true), _) => Ok(Some(SeekTo::Beginning)),
            (.., Some(text)) => Ok(Some(SeekTo::Time(moment_of("timestamp", text)?))),
            _ => Ok(None),
        }
    }
}

pub(super) async fn seek(
    State(context): State<Arc<Context>>,
    Names((group, queue)): Names<(String, String)>,
    Whole(body): Whole,
) -> Result<Response, Problem> {
    let target = Target::parse(&body)?;
    let to = target.read()?.ok_or_else(|| Problem::invalid("toEnd or timestamp is required"))?;
    let (group, queue) = (group_of(group)?, names::queue(queue)?);
    sought(&context, Reader { group: &group, queue: &queue, partition: None }, to, &target).await
}

/// By default to the end, the only target Queen knows here.
pub(super) async fn seek_partition(
    State(context): State<Arc<Context>>,
    Names((group, queue, partition)): Names<(String, String, String)>,
    Whole(body): Whole,
) -> Result<Response, Problem> {
    let target = if body.is_empty() { Target::default() } else { Target::parse(&body)? };
    let to = target.read()?.unwrap_or(SeekTo::End);
    let (group, queue, partition) = (group_of(group)?, names::queue(queue)?, names::partition(partition)?);
    sought(&context, Reader { group: &group, queue: &queue, partition: Some(&partition) }, to, &target).await
}

/// A group in a queue, or in one partition of it.
struct Reader<'n> {
    group: &'n GroupName,
    queue: &'n QueueName,
    partition: Option<&'n PartitionName>,
}

async fn sought(
    context: &Context,
    Reader { group, queue, partition }: Reader<'_>,
    to: SeekTo,
    target: &Target,
) -> Result<Response, Problem> {
    let sought = context.messages.seek(queue, group, partition, to).await?;
    Ok(answer::ok(&json!({
        "success": true,
        "consumerGroup": group.as_str(),
        "queueName": queue.as_str(),
        "partition": partition.map(PartitionName::as_str),
        "seekToEnd": to == SeekTo::End,
        "targetTimestamp": target.timestamp,
        "partitionsUpdated": sought.partitions,
        "partitionsClamped": sought.clamped,
    })))
}

fn group_of(name: String) -> Result<GroupName, Problem> {
    GroupName::new(name).map_err(names::of_name)
}

pub(super) fn spelt(group: &GroupDescription) -> Value {
    let (mode, since) = match group.began {
        Began::New => ("new", Some(moment::spell(group.created_at))),
        Began::From(time) => ("timestamp", Some(moment::spell(time))),
        _ => ("all", None),
    };
    let state = match group.state {
        GroupState::Idle | GroupState::Working => "Stable",
        _ => "Lagging",
    };
    json!({
        "name": group.name.as_str(),
        "topics": [group.queue.as_str()],
        "queueName": group.queue.as_str(),
        "members": group.leases,
        "partitions": group.partitions,
        "partitionsWithLag": group.partitions_behind,
        "totalLag": group.lag,
        "maxTimeLag": group.lag_time.as_secs(),
        "state": state,
        "subscriptionMode": mode,
        "subscriptionTimestamp": since,
        "subscriptionCreatedAt": moment::spell(group.created_at),
    })
}

fn place(row: &PartitionLag) -> Value {
    json!({
        "partition": row.partition.as_str(),
        "partitionId": row.partition_uid.0,
        "totalConsumed": row.settled,
        "offsetLag": row.lag,
        "timeLagSeconds": row.lag_time.as_secs(),
        "leaseActive": row.lease.is_some(),
        "failures": row.failures,
        "deliveries": row.deliveries,
    })
}
