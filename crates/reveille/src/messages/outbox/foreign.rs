//! Pushes in a caller's transaction, through tokio-postgres or sqlx.
//!
//! Next: `sql/functions/push_items.sql`, which writes the outbox.

use tokio_postgres::GenericClient;
use tokio_postgres::types::Type;
use uuid::Uuid;

use crate::database::Param;
use crate::messages::Messages;
use crate::messages::error::{MessagesError, SharedError};
use crate::messages::ids::MessageId;
use crate::messages::name::QueueName;
use crate::messages::push::{Entry, PushItem};
use crate::messages::statements::PUSH_ITEMS;

impl Messages {
    /// Push as part of the caller's own transaction: the messages exist if and when it commits, and
    /// the commit wakes their consumers. In their partitions they stand in the order in which
    /// transactions were committed, as far as that is visible from outside. Returns their ids. A
    /// message whose transaction id was seen before is dropped silently, after the commit.
    ///
    /// Locks nothing that others wait for, however long the transaction stays open. An item that
    /// cannot be stored fails the call, before anything is sent. Needs a connection to this
    /// database whose role may use the schema.
    pub async fn push_in<C>(&self, client: &C, items: Vec<PushItem>) -> Result<Vec<MessageId>, MessagesError>
    where
        C: GenericClient + Sync,
    {
        let foreign = Foreign::prepare(self, items).await?;
        let text = PUSH_ITEMS.text(self.database().schema());
        let typed: Vec<(Param<'_>, Type)> =
            foreign.params().into_iter().zip(PUSH_ITEMS.types.iter().cloned()).collect();
        let sent = client.query_typed(&text, &typed).await;
        sent.map_err(|error| MessagesError::Caller { source: SharedError::new(error) })?;
        Ok(foreign.ids())
    }

    /// The same on a connection, pool or transaction of sqlx.
    #[cfg(feature = "sqlx")]
    pub async fn push_in_sqlx<'c, E>(&self, executor: E, items: Vec<PushItem>) -> Result<Vec<MessageId>, MessagesError>
    where
        E: sqlx::PgExecutor<'c>,
    {
        let foreign = Foreign::prepare(self, items).await?;
        let text = PUSH_ITEMS.text(self.database().schema());
        let query = sqlx::query(&text)
            .bind(&foreign.queues)
            .bind(&foreign.partitions)
            .bind(&foreign.ids)
            .bind(&foreign.payloads)
            .bind(&foreign.transaction_ids)
            .bind(&foreign.trace_ids)
            .bind(&foreign.producers)
            .bind(&foreign.key_ids);
        let sent = query.execute(executor).await;
        sent.map_err(|error| MessagesError::Caller { source: SharedError::new(error) })?;
        Ok(foreign.ids())
    }

    /// A transaction that pushed to these queues was committed: wakes their consumers. Usually not
    /// needed, because the commit notifies; but the commit does not notify for a quiet queue, and
    /// this is a little faster.
    pub async fn pushed_in(&self, queues: &[QueueName]) -> Result<(), MessagesError> {
        let context = &self.parts.context;
        for name in queues {
            match context.catalog.queue(&context.database, name).await? {
                Some(queue) => context.notifier.pushed(queue.id, &[]),
                // The queue is created when its messages are moved.
                None => context.notifier.new_names(),
            }
        }
        Ok(())
    }
}

/// The parameters of such a push.
struct Foreign {
    queues: Vec<String>,
    partitions: Vec<String>,
    ids: Vec<Uuid>,
    payloads: Vec<Vec<u8>>,
    transaction_ids: Vec<Option<String>>,
    trace_ids: Vec<Option<Uuid>>,
    producers: Vec<Option<String>>,
    key_ids: Vec<Option<i32>>,
}

impl Foreign {
    async fn prepare(messages: &Messages, items: Vec<PushItem>) -> Result<Self, MessagesError> {
        let context = &messages.parts.context;
        let mut foreign = Self {
            queues: Vec::with_capacity(items.len()),
            partitions: Vec::with_capacity(items.len()),
            ids: Vec::with_capacity(items.len()),
            payloads: Vec::with_capacity(items.len()),
            transaction_ids: Vec::with_capacity(items.len()),
            trace_ids: Vec::with_capacity(items.len()),
            producers: Vec::with_capacity(items.len()),
            key_ids: Vec::with_capacity(items.len()),
        };
        for item in items {
            let Entry { item, id, .. } = Entry::checked(item, context.options.payload_bytes_max)?;
            let queue = context.catalog.queue(&context.database, &item.queue).await?;
            let key_id = if queue.is_some_and(|queue| queue.encrypted) {
                let keyless = || MessagesError::NoWriteKey { queue: item.queue.to_string() };
                Some(context.seal.write_key().ok_or_else(keyless)?)
            } else {
                None
            };
            foreign.payloads.push(match key_id {
                Some(key_id) => context.seal.seal(key_id, id, item.payload.as_bytes())?,
                None => item.payload.into_bytes().into(),
            });
            foreign.queues.push(item.queue.to_string());
            foreign.partitions.push(item.partition.to_string());
            foreign.ids.push(id.0);
            foreign.transaction_ids.push(item.transaction_id);
            foreign.trace_ids.push(item.trace_id);
            foreign.producers.push(item.producer);
            foreign.key_ids.push(key_id);
        }
        Ok(foreign)
    }

    fn params(&self) -> [Param<'_>; 8] {
        [
            &self.queues,
            &self.partitions,
            &self.ids,
            &self.payloads,
            &self.transaction_ids,
            &self.trace_ids,
            &self.producers,
            &self.key_ids,
        ]
    }

    fn ids(self) -> Vec<MessageId> {
        self.ids.into_iter().map(MessageId).collect()
    }
}
