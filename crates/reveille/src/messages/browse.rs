//! Shows messages without consuming them, and deletes single messages.
//!
//! For operators and their tools. Promises that every statement is bounded by an index and a limit,
//! and delays no pop. Messages have no state of their own: the state of a message for a group is
//! read from cursors and dead letters.

use std::time::SystemTime;

use tokio_postgres::Row;
use uuid::Uuid;

use super::Messages;
use super::error::MessagesError;
use super::ids::{MessageId, PartitionUid};
use super::name::{GroupName, PartitionName, QueueName};
use super::page::{Page, moment, without_nul};
use super::payload::Payload;
use super::statements::{BROWSE, DELETE_MESSAGE, FIND_MESSAGE, MESSAGE_STATES};

/// The state of a message, for one group or for all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageState {
    /// It waits.
    Pending,
    /// A consumer has a lease on it.
    Leased,
    /// Every group has settled it.
    Completed,
    /// A group gave up on it.
    Dead,
}

impl MessageState {
    fn word(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Leased => "leased",
            Self::Completed => "completed",
            Self::Dead => "dead",
        }
    }

    fn read(word: &str) -> Self {
        match word {
            "dead" => Self::Dead,
            "completed" => Self::Completed,
            "leased" => Self::Leased,
            _ => Self::Pending,
        }
    }
}

/// A filter for messages. Without any condition: all messages.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Browse {
    queue: Option<QueueName>,
    partition: Option<PartitionName>,
    namespace: Option<String>,
    task: Option<String>,
    since: Option<SystemTime>,
    before: Option<SystemTime>,
    state: Option<MessageState>,
}

impl Browse {
    /// All of them.
    pub fn all() -> Self {
        Self::default()
    }

    /// Of one queue. Default: all queues.
    #[must_use]
    pub fn queue(mut self, queue: QueueName) -> Self {
        self.queue = Some(queue);
        self
    }

    /// Of partitions of this name. Default: all partitions.
    #[must_use]
    pub fn partition(mut self, partition: PartitionName) -> Self {
        self.partition = Some(partition);
        self
    }

    /// Of queues of one namespace. Default: all of them.
    #[must_use]
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = Some(namespace.into());
        self
    }

    /// Of queues with one task. Default: all of them.
    #[must_use]
    pub fn task(mut self, task: impl Into<String>) -> Self {
        self.task = Some(task.into());
        self
    }

    /// Pushed at this time or later. Default: ever.
    #[must_use]
    pub fn since(mut self, time: SystemTime) -> Self {
        self.since = Some(moment(time));
        self
    }

    /// Pushed before this time. Default: until now.
    #[must_use]
    pub fn before(mut self, time: SystemTime) -> Self {
        self.before = Some(moment(time));
        self
    }

    /// In this state; then only the newest segments are searched. Default: any.
    #[must_use]
    pub fn state(mut self, state: MessageState) -> Self {
        self.state = Some(state);
        self
    }
}

/// A message without its payload.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Seen {
    /// Its id.
    pub id: MessageId,
    /// Its transaction id.
    pub transaction_id: String,
    /// Its queue.
    pub queue: QueueName,
    /// Its partition.
    pub partition: PartitionName,
    /// The public id of its partition.
    pub partition_uid: PartitionUid,
    /// Its position in the partition.
    pub seq: i64,
    /// For following it through other systems.
    pub trace_id: Option<Uuid>,
    /// The name of its producer.
    pub producer: Option<String>,
    /// When it was pushed.
    pub created_at: SystemTime,
    /// Whether its payload is stored encrypted.
    pub sealed: bool,
    /// Its state, over all groups.
    pub state: MessageState,
    /// How many groups the queue has.
    pub groups: usize,
    /// How many of them have settled it.
    pub settled_by: usize,
}

/// One message with its payload, and its state for each group.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Found {
    /// The message.
    pub message: Seen,
    /// Its payload; `None` if it is encrypted with a key that this process does not have.
    pub payload: Option<Payload>,
    /// Its state for each group, by the groups' names.
    pub groups: Vec<GroupView>,
}

/// The state of a message for one group.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct GroupView {
    /// The group.
    pub group: GroupName,
    /// The state of the message for it.
    pub state: MessageState,
    /// When its lease on the message ends, if it has one.
    pub lease_until: Option<SystemTime>,
    /// How often its consumers failed.
    pub failures: i32,
    /// The error, if it gave up.
    pub error: Option<String>,
}

impl Messages {
    /// Messages, the newest first, without their payloads. Reads the 1,000 partitions with the
    /// latest pushes: to see an older partition, name it.
    pub async fn browse(&self, which: &Browse, page: Page) -> Result<Vec<Seen>, MessagesError> {
        for text in [&which.namespace, &which.task].into_iter().flatten() {
            without_nul("a namespace or task", text)?;
        }
        let (queue, partition) =
            (which.queue.as_ref().map(QueueName::as_str), which.partition.as_ref().map(PartitionName::as_str));
        let state = which.state.map(MessageState::word);
        let (limit, offset) = (page.limit(), page.offset());
        let connection = self.parts.context.database.administer().await?;
        let rows = connection
            .query(
                &BROWSE,
                &[
                    &queue,
                    &which.namespace,
                    &which.task,
                    &partition,
                    &which.since,
                    &which.before,
                    &state,
                    &limit,
                    &offset,
                ],
            )
            .await?;
        let seen = |row: &Row| {
            let count = |column| usize::try_from(row.get::<_, i64>(column)).unwrap_or(0);
            Seen::read(row, MessageState::read(row.get("state")), count("groups"), count("settled"))
        };
        rows.iter().map(seen).collect()
    }

    /// The newest message of a partition with this transaction id, if it is among the newest
    /// million or so.
    pub async fn find(&self, partition: PartitionUid, transaction_id: &str) -> Result<Option<Found>, MessagesError> {
        without_nul("the transaction id", transaction_id)?;
        let context = &self.parts.context;
        let Some(entry) = context.catalog.by_uid(&context.database, partition).await? else { return Ok(None) };
        let connection = context.database.administer().await?;
        let Some(row) = connection.query_opt(&FIND_MESSAGE, &[&entry.id.0, &transaction_id]).await? else {
            return Ok(None);
        };
        let states = connection.query(&MESSAGE_STATES, &[&entry.id.0, &row.get::<_, i64>("seq")]).await?;
        let groups = states.iter().map(GroupView::read).collect::<Result<Vec<_>, _>>()?;
        let settled = groups.iter().filter(|view| view.settled()).count();
        let message = Seen::read(&row, overall(&groups), groups.len(), settled)?;
        let payload = context.seal.open(row.get("key_id"), message.id, row.get("payload")).ok();
        Ok(Some(Found { message, payload, groups }))
    }

    /// Delete one message for every group, and erase its payload; its dead letters stay. A consumer
    /// that has it already keeps it. Returns whether it existed.
    pub async fn delete_message(&self, partition: PartitionUid, transaction_id: &str) -> Result<bool, MessagesError> {
        without_nul("the transaction id", transaction_id)?;
        let context = &self.parts.context;
        let Some(entry) = context.catalog.by_uid(&context.database, partition).await? else { return Ok(false) };
        let connection = context.database.administer().await?;
        let Some(row) = connection.query_opt(&FIND_MESSAGE, &[&entry.id.0, &transaction_id]).await? else {
            return Ok(false);
        };
        Ok(connection.execute(&DELETE_MESSAGE, &[&entry.id.0, &row.get::<_, i64>("seq")]).await? > 0)
    }
}

impl Seen {
    fn read(row: &Row, state: MessageState, groups: usize, settled_by: usize) -> Result<Self, MessagesError> {
        Ok(Self {
            id: MessageId(row.get("id")),
            transaction_id: row.get("transaction_id"),
            queue: QueueName::new(row.get::<_, String>("queue"))?,
            partition: PartitionName::new(row.get::<_, String>("partition"))?,
            partition_uid: PartitionUid(row.get("partition_uid")),
            seq: row.get("seq"),
            trace_id: row.get("trace_id"),
            producer: row.get("producer"),
            created_at: row.get("at"),
            sealed: row.get("sealed"),
            state,
            groups,
            settled_by,
        })
    }
}

impl GroupView {
    fn read(row: &Row) -> Result<Self, MessagesError> {
        let state = MessageState::read(row.get("state"));
        Ok(Self {
            group: GroupName::new(row.get::<_, String>("consumer"))?,
            state,
            lease_until: row.get::<_, Option<SystemTime>>("lease_until").filter(|_| state == MessageState::Leased),
            failures: row.get("failures"),
            error: row.get("error"),
        })
    }

    fn settled(&self) -> bool {
        matches!(self.state, MessageState::Completed | MessageState::Dead)
    }
}

fn overall(groups: &[GroupView]) -> MessageState {
    let any = |state| groups.iter().any(|view| view.state == state);
    if any(MessageState::Dead) {
        MessageState::Dead
    } else if any(MessageState::Leased) {
        MessageState::Leased
    } else if any(MessageState::Pending) || groups.is_empty() {
        MessageState::Pending
    } else {
        MessageState::Completed
    }
}
