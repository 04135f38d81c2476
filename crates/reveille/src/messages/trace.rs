//! Traces: notes of consumers about a message.
//!
//! Owns the traces of all messages. A page of traces is bounded in bytes, and reports the total.

use std::time::SystemTime;

use tokio_postgres::Row;

use super::Messages;
use super::error::MessagesError;
use super::ids::PartitionUid;
use super::name::{GroupName, PartitionName, QueueName};
use super::page::{PAGE_BYTES_MAX, Page, without_nul};
use super::payload::Payload;
use super::statements::{ADD_TRACE, MESSAGE_TRACES, NAMED_TRACES, TRACE_NAMES};
use crate::database::Param;

/// How many names a trace may have, and how many bytes a name may have: names are indexed.
const NAMES_MAX: usize = 100;
const NAME_BYTES_MAX: usize = 1000;

/// A note about a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewTrace {
    partition: PartitionUid,
    transaction_id: String,
    group: Option<GroupName>,
    event_type: String,
    names: Vec<String>,
    body: Payload,
}

impl NewTrace {
    /// About a message, named by its partition and transaction id.
    pub fn new(partition: PartitionUid, transaction_id: impl Into<String>, body: impl Into<Payload>) -> Self {
        Self {
            partition,
            transaction_id: transaction_id.into(),
            group: None,
            event_type: "info".to_owned(),
            names: Vec::new(),
            body: body.into(),
        }
    }

    /// The group that notes it. Default: none.
    #[must_use]
    pub fn group(mut self, group: GroupName) -> Self {
        self.group = Some(group);
        self
    }

    /// Its type. Default: `info`.
    #[must_use]
    pub fn event_type(mut self, event_type: impl Into<String>) -> Self {
        self.event_type = event_type.into();
        self
    }

    /// Names under which it can be found, for example of a business process. Default: none; at most
    /// 100, of at most 1,000 bytes each.
    #[must_use]
    pub fn names(mut self, names: impl IntoIterator<Item = String>) -> Self {
        self.names = names.into_iter().collect();
        self
    }

    fn check(&self) -> Result<(), MessagesError> {
        without_nul("the transaction id", &self.transaction_id)?;
        without_nul("the type of a trace", &self.event_type)?;
        self.names.iter().try_for_each(|name| without_nul("the name of a trace", name))?;
        let longest = self.names.iter().map(String::len).max().unwrap_or(0);
        if self.names.len() > NAMES_MAX || longest > NAME_BYTES_MAX {
            let (what, allowed) = ("the names of a trace", "at most 100, of at most 1,000 bytes each");
            return Err(MessagesError::OutOfRange {
                what,
                allowed,
                given: format!("{} of up to {longest}", self.names.len()),
            });
        }
        Ok(())
    }
}

/// A note about a message, as it was stored.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Trace {
    /// Its number.
    pub id: i64,
    /// The queue of the message.
    pub queue: QueueName,
    /// The partition of the message.
    pub partition: PartitionName,
    /// The public id of that partition.
    pub partition_uid: PartitionUid,
    /// The transaction id of the message.
    pub transaction_id: String,
    /// The group that noted it.
    pub group: Option<String>,
    /// Its type.
    pub event_type: String,
    /// Names under which it can be found.
    pub names: Vec<String>,
    /// The note.
    pub body: Payload,
    /// When it was stored.
    pub at: SystemTime,
}

/// A name of traces.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TraceName {
    /// The name.
    pub name: String,
    /// How many traces have it.
    pub traces: i64,
    /// Of how many messages these are.
    pub messages: i64,
    /// When the last of them was stored.
    pub last_at: SystemTime,
}

impl Messages {
    /// Store a note about a message, and return its number. `None` if there is no such partition.
    pub async fn trace(&self, trace: NewTrace) -> Result<Option<i64>, MessagesError> {
        trace.check()?;
        let context = &self.parts.context;
        let limit = context.options.payload_bytes_max;
        if trace.body.len() > limit {
            return Err(MessagesError::PayloadTooLarge { bytes: trace.body.len(), limit });
        }
        let Some(entry) = context.catalog.by_uid(&context.database, trace.partition).await? else { return Ok(None) };
        let group = trace.group.as_ref().map(GroupName::as_str);
        let row = context
            .database
            .acquire()
            .await?
            .query_opt(
                &ADD_TRACE,
                &[&entry.id.0, &trace.transaction_id, &group, &trace.event_type, &trace.names, &trace.body.as_bytes()],
            )
            .await?;
        Ok(row.map(|row| row.get("id")))
    }

    /// A page of the traces of a message, the oldest first, and how many there are in all (zero
    /// behind the last page). A page ends before it has more than 16 MiB of bodies, unless its
    /// first trace alone has more: the next page begins after the traces that were returned.
    pub async fn traces(
        &self,
        partition: PartitionUid,
        transaction_id: &str,
        page: Page,
    ) -> Result<(Vec<Trace>, i64), MessagesError> {
        without_nul("the transaction id", transaction_id)?;
        let context = &self.parts.context;
        let Some(entry) = context.catalog.by_uid(&context.database, partition).await? else {
            return Ok((Vec::new(), 0));
        };
        let connection = context.database.administer().await?;
        let (limit, offset) = (page.limit(), page.offset());
        let params: [Param<'_>; 5] = [&entry.id.0, &transaction_id, &limit, &offset, &PAGE_BYTES_MAX];
        let rows = connection.query(&MESSAGE_TRACES, &params).await?;
        Ok((rows.iter().map(Trace::read).collect::<Result<_, _>>()?, total(&rows)))
    }

    /// A page of the traces with a name, as [`Messages::traces`].
    pub async fn traces_named(&self, name: &str, page: Page) -> Result<(Vec<Trace>, i64), MessagesError> {
        without_nul("the name of a trace", name)?;
        let connection = self.parts.context.database.administer().await?;
        let rows = connection.query(&NAMED_TRACES, &[&name, &page.limit(), &page.offset(), &PAGE_BYTES_MAX]).await?;
        Ok((rows.iter().map(Trace::read).collect::<Result<_, _>>()?, total(&rows)))
    }

    /// A page of the names of traces, the latest first, and how many there are in all.
    pub async fn trace_names(&self, page: Page) -> Result<(Vec<TraceName>, i64), MessagesError> {
        let connection = self.parts.context.database.administer().await?;
        let rows = connection.query(&TRACE_NAMES, &[&page.limit(), &page.offset()]).await?;
        let name = |row: &Row| TraceName {
            name: row.get("name"),
            traces: row.get("traces"),
            messages: row.get("messages"),
            last_at: row.get("last_at"),
        };
        Ok((rows.iter().map(name).collect(), total(&rows)))
    }
}

impl Trace {
    fn read(row: &Row) -> Result<Self, MessagesError> {
        Ok(Self {
            id: row.get("id"),
            queue: QueueName::new(row.get::<_, String>("queue"))?,
            partition: PartitionName::new(row.get::<_, String>("partition"))?,
            partition_uid: PartitionUid(row.get("partition_uid")),
            transaction_id: row.get("transaction_id"),
            group: row.get("consumer_group"),
            event_type: row.get("event_type"),
            names: row.get("names"),
            body: Payload::new(row.get::<_, Vec<u8>>("body")),
            at: row.get("at"),
        })
    }
}

fn total(rows: &[Row]) -> i64 {
    rows.first().map_or(0, |row| row.get("total"))
}
