//! Dead letters: messages that a group gave up on, kept with the error.
//!
//! Owns the list, the deletion and the redrive. Promises that a page reports the total; and that a
//! redriven message goes to the end of its partition, for its own group alone, while the same
//! commit removes its letter.

use std::time::SystemTime;

use tokio_postgres::Row;
use uuid::Uuid;

use super::Messages;
use super::context::MessagesContext;
use super::error::MessagesError;
use super::ids::{MessageId, PartitionId, PartitionUid, QueueId};
use super::name::{GroupName, PartitionName, QueueName};
use super::page::{PAGE_BYTES_MAX, Page, moment, without_nul};
use super::payload::Payload;
use super::statements::{COUNT_DEAD_LETTERS, DEAD_LETTER_IDS, DEAD_LETTERS, DELETE_DEAD_LETTERS, REDRIVE};
use crate::database::Param;

/// How many letters one commit redrives: each may have a payload of the largest size.
const REDRIVEN_AT_ONCE: usize = 64;
/// How many letters one commit deletes.
const DELETED_AT_ONCE: usize = 1000;

/// A dead letter's number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeadLetterId(pub i64);

/// A filter for dead letters. Without any condition: all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeadLetters {
    queue: Option<QueueName>,
    group: Option<GroupName>,
    partition: Option<PartitionName>,
    since: Option<SystemTime>,
    before: Option<SystemTime>,
    text: Option<String>,
}

impl DeadLetters {
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

    /// Of one group. Default: all groups, also those that are gone.
    #[must_use]
    pub fn group(mut self, group: GroupName) -> Self {
        self.group = Some(group);
        self
    }

    /// Of one partition. Default: all partitions.
    #[must_use]
    pub fn partition(mut self, partition: PartitionName) -> Self {
        self.partition = Some(partition);
        self
    }

    /// Given up at this time or later. Default: ever.
    #[must_use]
    pub fn since(mut self, time: SystemTime) -> Self {
        self.since = Some(moment(time));
        self
    }

    /// Given up before this time. Default: until now.
    #[must_use]
    pub fn before(mut self, time: SystemTime) -> Self {
        self.before = Some(moment(time));
        self
    }

    /// With this text in the error (in whatever case) or in the transaction id. Default: any.
    #[must_use]
    pub fn text(mut self, text: impl Into<String>) -> Self {
        self.text = Some(text.into());
        self
    }
}

/// A message that a group gave up on.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeadLetter {
    /// Its number.
    pub id: DeadLetterId,
    /// The queue of the message.
    pub queue: QueueName,
    /// The partition of the message.
    pub partition: PartitionName,
    /// The public id of that partition.
    pub partition_uid: PartitionUid,
    /// The group that gave up; `None` if it was deleted.
    pub group: Option<GroupName>,
    /// The position of the message in the partition.
    pub seq: i64,
    /// The message's id.
    pub message_id: MessageId,
    /// The message's transaction id.
    pub transaction_id: String,
    /// For following it through other systems.
    pub trace_id: Option<Uuid>,
    /// The name of its producer.
    pub producer: Option<String>,
    /// Its payload; `None` if it is encrypted with a key that this process does not have.
    pub payload: Option<Payload>,
    /// When it was pushed.
    pub pushed_at: SystemTime,
    /// When it was given up.
    pub dead_at: SystemTime,
    /// How often consumers failed with it.
    pub failures: i32,
    /// How often it was claimed.
    pub deliveries: i32,
    /// The error, as the consumer reported it, or that of Reveille.
    pub error: Option<String>,
}

/// A page of dead letters.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeadLetterPage {
    /// The newest first.
    pub letters: Vec<DeadLetter>,
    /// How many there are in all.
    pub total: i64,
}

impl Messages {
    /// A page of the dead letters, the newest first, and how many there are in all. A page ends
    /// before it has more than 16 MiB of payloads, unless its first letter alone has more: the next
    /// page begins after the letters that were returned.
    pub async fn dead_letters(&self, which: &DeadLetters, page: Page) -> Result<DeadLetterPage, MessagesError> {
        let connection = self.parts.context.database.administer().await?;
        let filter = Filter::new(which)?;
        let (limit, offset) = (page.limit(), page.offset());
        let rows = connection.query(&DEAD_LETTERS, &filter.with(&[&limit, &offset, &PAGE_BYTES_MAX])).await?;
        let total = count(&connection, &filter).await?;
        let letters = rows.iter().map(|row| letter(&self.parts.context, row)).collect::<Result<_, _>>()?;
        Ok(DeadLetterPage { letters, total })
    }

    /// Redrive these: each goes to the end of its partition, for its own group alone. Returns how
    /// many: letters that do not exist, or whose group is gone, do not count.
    pub async fn redrive(&self, letters: &[DeadLetterId]) -> Result<u64, MessagesError> {
        let mut redriven = 0;
        for some in letters.chunks(REDRIVEN_AT_ONCE) {
            let ids: Vec<i64> = some.iter().map(|letter| letter.0).collect();
            redriven += self.redrive_some(&ids).await?;
        }
        Ok(redriven)
    }

    /// Redrive all that match now; letters that are added meanwhile stay. Returns how many.
    pub async fn redrive_all(&self, which: &DeadLetters) -> Result<u64, MessagesError> {
        let mut redriven = 0;
        let mut walk = Walk::begin(self, which, true).await?;
        while let Some(ids) = walk.next(self, REDRIVEN_AT_ONCE).await? {
            redriven += self.redrive_some(&ids).await?;
        }
        Ok(redriven)
    }

    /// Delete these for good. Returns how many existed.
    pub async fn delete_dead_letters(&self, letters: &[DeadLetterId]) -> Result<u64, MessagesError> {
        let connection = self.parts.context.database.administer().await?;
        let mut deleted = 0;
        for some in letters.chunks(DELETED_AT_ONCE) {
            let ids: Vec<i64> = some.iter().map(|letter| letter.0).collect();
            deleted += connection.execute(&DELETE_DEAD_LETTERS, &[&ids]).await?;
        }
        Ok(deleted)
    }

    /// Delete all that match now, for good. Returns how many.
    pub async fn delete_all_dead_letters(&self, which: &DeadLetters) -> Result<u64, MessagesError> {
        let mut deleted = 0;
        let mut walk = Walk::begin(self, which, false).await?;
        while let Some(ids) = walk.next(self, DELETED_AT_ONCE).await? {
            deleted += self.parts.context.database.administer().await?.execute(&DELETE_DEAD_LETTERS, &[&ids]).await?;
        }
        Ok(deleted)
    }

    async fn redrive_some(&self, ids: &[i64]) -> Result<u64, MessagesError> {
        let context = &self.parts.context;
        let mut redriven = 0;
        for row in context.database.administer().await?.query(&REDRIVE, &[&ids]).await? {
            redriven += u64::try_from(row.get::<_, i32>("messages")).unwrap_or(0);
            context.notifier.pushed(QueueId(row.get("queue")), &[PartitionId(row.get("partition"))]);
        }
        Ok(redriven)
    }
}

/// The first six parameters of every statement about dead letters.
struct Filter<'w> {
    texts: [Option<&'w str>; 4],
    times: [Option<SystemTime>; 2],
}

impl<'w> Filter<'w> {
    fn new(which: &'w DeadLetters) -> Result<Self, MessagesError> {
        which.text.as_deref().map_or(Ok(()), |text| without_nul("the text to search for", text))?;
        let texts = [
            which.queue.as_ref().map(QueueName::as_str),
            which.group.as_ref().map(GroupName::as_str),
            which.partition.as_ref().map(PartitionName::as_str),
            which.text.as_deref(),
        ];
        Ok(Self { texts, times: [which.since, which.before] })
    }

    fn with<'p>(&'p self, more: &[Param<'p>]) -> Vec<Param<'p>> {
        let [queue, group, partition, text] = &self.texts;
        let [since, before] = &self.times;
        let six: [Param<'p>; 6] = [queue, group, partition, since, before, text];
        six.into_iter().chain(more.iter().copied()).collect()
    }
}

/// Walks the letters from the oldest, and ends after as many as there were at the beginning:
/// letters that are added meanwhile could keep it going for ever.
struct Walk<'w> {
    filter: Filter<'w>,
    living: bool,
    left: usize,
    after: i64,
}

impl<'w> Walk<'w> {
    async fn begin(messages: &Messages, which: &'w DeadLetters, living: bool) -> Result<Self, MessagesError> {
        let filter = Filter::new(which)?;
        let total = count(&*messages.parts.context.database.administer().await?, &filter).await?;
        Ok(Self { filter, living, left: usize::try_from(total).unwrap_or(0), after: 0 })
    }

    async fn next(&mut self, messages: &Messages, most: usize) -> Result<Option<Vec<i64>>, MessagesError> {
        let limit = i64::try_from(most.min(self.left)).unwrap_or(i64::MAX);
        if limit == 0 {
            return Ok(None);
        }
        let connection = messages.parts.context.database.administer().await?;
        let rows = connection.query(&DEAD_LETTER_IDS, &self.filter.with(&[&self.after, &limit, &self.living])).await?;
        let ids: Vec<i64> = rows.iter().map(|row| row.get("id")).collect();
        self.left -= ids.len();
        self.after = ids.last().copied().unwrap_or(self.after);
        Ok((!ids.is_empty()).then_some(ids))
    }
}

async fn count(connection: &crate::database::Connection, filter: &Filter<'_>) -> Result<i64, MessagesError> {
    let row = connection.query_opt(&COUNT_DEAD_LETTERS, &filter.with(&[])).await?;
    Ok(row.map_or(0, |row| row.get("total")))
}

fn letter(context: &MessagesContext, row: &Row) -> Result<DeadLetter, MessagesError> {
    let message_id = MessageId(row.get("message_id"));
    let group: Option<String> = row.get("consumer");
    Ok(DeadLetter {
        id: DeadLetterId(row.get("id")),
        queue: QueueName::new(row.get::<_, String>("queue"))?,
        partition: PartitionName::new(row.get::<_, String>("partition"))?,
        partition_uid: PartitionUid(row.get("partition_uid")),
        group: group.map(GroupName::new).transpose()?,
        seq: row.get("seq"),
        message_id,
        transaction_id: row.get("transaction_id"),
        trace_id: row.get("trace_id"),
        producer: row.get("producer"),
        payload: context.seal.open(row.get("key_id"), message_id, row.get("payload")).ok(),
        pushed_at: row.get("pushed_at"),
        dead_at: row.get("at"),
        failures: row.get("failures"),
        deliveries: row.get("deliveries"),
        error: row.get("error"),
    })
}
