//! Messages: queues of ordered partitions, read by consumer groups, each at its own place.
//!
//! Owns everything between a push and its last ack. Promises that a push which was answered is
//! durable and is seen by every group, in the order of its partition; that a lease which was lost
//! settles nothing; and that whoever waits is woken by whatever makes something ready. Knows no
//! HTTP: a server is one more caller.
//!
//! The path: [`push`](Messages::push) → commit → `bell` (hint and ring) → [`pop`](Messages::pop)
//! (look, claim) → deliver → [`settle`](Messages::settle).

mod catalog;
mod error;
mod ground;
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

mod bell;
mod key;

mod group;
mod pop;

mod settle;

mod browse;
mod dead;
mod figures;
mod groups;
mod maintain;
mod page;
mod seek;
mod trace;
mod transaction;

pub use crate::batcher::LaneFigures;
pub use browse::{Browse, Found, GroupView, MessageState, Seen};
pub use dead::{DeadLetter, DeadLetterId, DeadLetterPage, DeadLetters};
pub use error::{MessagesError, NameError, SharedError};
pub use figures::MessagesFigures;
pub use group::Subscription;
pub use groups::{Available, Began, DeletedGroup, GroupDescription, GroupState, PartitionLag, QueueLag, Subscriptions};
pub use ids::{LeaseId, MessageId, PartitionUid};
pub use maintain::{ChoreReport, Upkeep};
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

use std::sync::Arc;

use crate::database::Database;
use ground::Ground;

pub(crate) use statements::ALL as STATEMENTS;

/// The queues of one database. Clones share everything.
#[derive(Debug, Clone)]
pub struct Messages {
    parts: Arc<Parts>,
}

#[derive(Debug)]
struct Parts {
    ground: Arc<Ground>,
    pusher: push::Pusher,
    popper: pop::Popper,
    settler: settle::Settler,
}

impl Messages {
    /// How many connections messages of one process open at most beside those of the
    /// [database](crate::database::DatabaseOptions::connections_max): for pushes, for new queues
    /// and partitions, for settling, and for pops.
    pub const CONNECTIONS: usize = push::LANES.len() + push::MAKERS.len() + settle::LANES.len() + pop::LOOKS.len();

    /// On a database whose schema is up to date. Opens no connection yet: each lane does with its
    /// first work.
    pub fn new(database: &Database, options: MessagesOptions) -> Self {
        let (ground, runner) = Ground::new(database, options);
        let ground = Arc::new(ground);
        let pusher = push::Pusher::new(&ground);
        let popper = pop::Popper::new(&ground, runner);
        let settler = settle::Settler::new(&ground);
        maintain::start(&ground);
        Self { parts: Arc::new(Parts { ground, pusher, popper, settler }) }
    }

    /// The database these queues are in.
    pub fn database(&self) -> &Database {
        &self.parts.ground.database
    }

    /// Ends in order: whoever waits gets [`MessagesError::Closed`], what is in flight is finished,
    /// and the other nodes are told of it. The database stays open.
    pub async fn close(&self) {
        self.parts.ground.context.close().await;
        self.parts.ground.bell.flush().await;
    }
}

impl Drop for Parts {
    fn drop(&mut self) {
        self.ground.context.abandon();
    }
}
