//! What every part of the queues shares: database, options, names, announcements, and the tasks
//! that end with them.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use reveille_wake::Runner;

use super::catalog::Catalog;
use super::key::Key;
use super::options::MessagesOptions;
use super::ready::MessageNotifier;
use super::seal::Seal;
use crate::database::Database;
use crate::service::Context;

#[derive(Debug)]
pub(super) struct MessagesContext {
    pub(super) database: Database,
    pub(super) service: Arc<Context>,
    pub(super) options: MessagesOptions,
    pub(super) catalog: Catalog,
    pub(super) notifier: MessageNotifier,
    pub(super) seal: Seal,
    pub(super) tally: Tally,
}

/// What happened by itself since these queues were opened, without anybody being told of it in an
/// answer.
#[derive(Debug, Default)]
pub(super) struct Tally {
    /// Messages that claims sent to the dead letters.
    pub(super) buried: AtomicU64,
    /// Groups that had not been told of a message.
    pub(super) repairs: AtomicU64,
}

impl MessagesContext {
    /// And what fires the due times of the hub, for the claims that start it.
    pub(super) fn new(database: &Database, options: MessagesOptions) -> (Self, Runner<Key>) {
        let service = Arc::new(Context::new(database));
        let (notifier, runner) = MessageNotifier::new(&service, &options);
        let context = Self {
            database: database.clone(),
            service,
            catalog: Catalog::default(),
            notifier,
            seal: Seal::new(&options.key_ring),
            tally: Tally::default(),
            options,
        };
        (context, runner)
    }
}
