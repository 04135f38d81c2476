//! What every part of the queues shares: database, options, names, notifier, and the tasks that end
//! with them.

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

/// Counts of events since these queues were opened that no answer to a caller reports.
#[derive(Debug, Default)]
pub(super) struct Tally {
    /// Messages that claims sent to the dead letters.
    pub(super) buried: AtomicU64,
    /// Partitions that upkeep had to mark ready for a group.
    pub(super) repairs: AtomicU64,
}

impl MessagesContext {
    /// Also returns the runner of the hub's due times, for the claims that start it.
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
