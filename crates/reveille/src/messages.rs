//! Messages: queues of ordered partitions, read by consumer groups, each at its own position.
//!
//! Owns everything between a push and its last ack. Promises that an answered push is durable and
//! is seen by every group, in the order of its partition; that a lost lease settles nothing; and
//! that whatever makes a message ready wakes the consumers that wait for it. Knows no HTTP: a
//! server is one more caller.
//!
//! The path: [`push`](Messages::push) → commit → notifier (wakes here, sends hints) →
//! [`pop`](Messages::pop) (a claim round) → deliver → [`settle`](Messages::settle).

mod catalog;
mod context;
mod error;
mod ids;
mod message;
mod name;
mod options;
mod payload;
mod statements;

mod outbox;
mod push;
mod queue;
mod seal;

mod key;
mod ready;

mod group;
mod pop;

mod settle;

mod browse;
mod dead;
mod figures;
mod groups;
mod page;
mod seek;
mod trace;
mod transaction;
mod upkeep;

pub use crate::batcher::BatcherFigures;
pub use browse::{Browse, Found, GroupView, MessageState, Seen};
pub use dead::{DeadLetter, DeadLetterId, DeadLetterPage, DeadLetters};
pub use error::{MessagesError, NameError, SharedError};
pub use figures::MessagesFigures;
pub use group::Subscription;
pub use groups::{Available, Began, DeletedGroup, GroupDescription, GroupState, PartitionLag, QueueLag, Subscriptions};
pub use ids::{LeaseId, MessageId, PartitionUid};
pub use message::{Batch, Message, PartitionLease};
pub use name::{GroupName, PartitionName, QueueName};
pub use options::MessagesOptions;
pub use page::Page;
pub use payload::Payload;
pub use pop::Pop;
pub use push::{PushItem, PushOutcome, Pushed};
pub use queue::{QueueDescription, QueueList, QueueOptions, Space, Switch};
pub use seek::{SeekTo, Sought};
pub use settle::{Acknowledgement, Outcome, Renewed, Settled, Settlement};
pub use trace::{NewTrace, Trace, TraceName};
pub use transaction::{Changes, TransactionOutcome};
pub use upkeep::{Upkeep, UpkeepReport};

use std::sync::Arc;

use crate::database::Database;
use context::MessagesContext;

pub(crate) use statements::ALL as STATEMENTS;

/// The queues of one database. Clones share everything.
#[derive(Debug, Clone)]
pub struct Messages {
    parts: Arc<Parts>,
}

#[derive(Debug)]
struct Parts {
    context: Arc<MessagesContext>,
    pusher: push::Pusher,
    popper: pop::Popper,
    settler: settle::Settler,
}

impl Messages {
    /// How many connections messages of one process open at most beside those of the
    /// [database](crate::database::DatabaseOptions::connections_max): for pushes, for new queues
    /// and partitions, for settling, and for pops.
    pub const CONNECTIONS: usize =
        push::BATCHERS.len() + push::CREATORS.len() + settle::BATCHERS.len() + pop::CONNECTION_NAMES.len();

    /// On a database whose schema is up to date. Opens no connection yet: each batcher does with
    /// its first work.
    pub fn new(database: &Database, options: MessagesOptions) -> Self {
        let (context, runner) = MessagesContext::new(database, options);
        let context = Arc::new(context);
        let pusher = push::Pusher::new(&context);
        let popper = pop::Popper::new(&context, runner);
        let settler = settle::Settler::new(&context);
        upkeep::start(&context);
        Self { parts: Arc::new(Parts { context, pusher, popper, settler }) }
    }

    /// The database these queues are in.
    pub fn database(&self) -> &Database {
        &self.parts.context.database
    }

    /// Ends in order: waiting pops get [`MessagesError::Closed`], what is in flight is finished,
    /// and hints about it are sent to the other nodes. The database stays open.
    pub async fn close(&self) {
        self.parts.context.service.close().await;
        self.parts.context.notifier.flush().await;
    }
}

impl Drop for Parts {
    fn drop(&mut self) {
        self.context.service.abandon();
    }
}
