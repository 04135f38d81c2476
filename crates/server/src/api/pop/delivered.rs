//! A batch, as clients read it.

use reveille::messages::{Batch, Message, PartitionLease};
use reveille::moment;
use serde::Serialize;
use uuid::Uuid;

use crate::wire::json::Carried;

/// The width we chose for a pop whose client left it to us.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Autopilot {
    pub(super) partitions: u32,
    pub(super) batch: u32,
    #[serde(rename = "waitMs")]
    pub(super) wait_ms: u64,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Delivered<'b> {
    success: bool,
    queue: &'b str,
    /// Of the first partition: older clients know pops of one partition only.
    partition: &'b str,
    partition_id: Option<Uuid>,
    lease_id: String,
    consumer_group: &'b str,
    partitions_claimed: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    autopilot: Option<&'b Autopilot>,
    messages: Vec<Item<'b>>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Item<'b> {
    id: Uuid,
    transaction_id: &'b str,
    trace_id: Option<Uuid>,
    data: Carried<'b>,
    #[serde(skip_serializing_if = "Option::is_none")]
    encoding: Option<&'static str>,
    producer_sub: Option<&'b str>,
    created_at: String,
    queue: &'b str,
    partition: &'b str,
    partition_id: Uuid,
    lease_id: String,
    consumer_group: &'b str,
    delivery_attempt: i32,
    #[serde(skip_serializing_if = "Option::is_none")]
    lease_seconds: Option<f64>,
}

impl<'b> Delivered<'b> {
    /// `queue` is the queue of the request; empty for a namespace or task.
    pub(super) fn new(batch: &'b Batch, queue: &'b str, autopilot: Option<&'b Autopilot>) -> Self {
        let first = batch.partitions.first();
        // Empty, not absent, for messages that the pop itself acked: clients expect a text.
        let lease_id = batch.lease.map(|lease| lease.to_string()).unwrap_or_default();
        let of_partition = |lease: &'b PartitionLease| lease.messages.iter().map(move |message| (lease, message));
        let messages = batch.partitions.iter().flat_map(of_partition);
        Self {
            success: true,
            queue,
            partition: first.map_or("", |lease| lease.partition.as_str()),
            partition_id: first.map(|lease| lease.partition_uid.0),
            consumer_group: batch.group.as_str(),
            partitions_claimed: batch.partitions.len(),
            autopilot,
            messages: messages.map(|(lease, message)| Item::new(batch, lease, message, &lease_id)).collect(),
            lease_id,
        }
    }
}

impl<'b> Item<'b> {
    fn new(batch: &'b Batch, lease: &'b PartitionLease, message: &'b Message, lease_id: &str) -> Self {
        let data = Carried::of(message.payload.as_bytes());
        Self {
            id: message.id.0,
            transaction_id: &message.transaction_id,
            trace_id: message.trace_id,
            encoding: data.encoding(message.payload.as_bytes()),
            data,
            producer_sub: message.producer.as_deref(),
            created_at: moment::spell(message.created_at),
            queue: lease.queue.as_str(),
            partition: lease.partition.as_str(),
            partition_id: lease.partition_uid.0,
            lease_id: lease_id.to_owned(),
            consumer_group: batch.group.as_str(),
            // The cursor is past messages that the pop itself acked and counts from zero again, so
            // this was their first delivery.
            delivery_attempt: lease.deliveries.max(1),
            lease_seconds: batch.lease.map(|_| lease.lease_time.as_secs_f64()),
        }
    }
}
