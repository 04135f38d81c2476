//! What every part of the queues shares: database, options, names, notifier, and the tasks that end
//! with them.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use reveille_wake::Runner;

use super::catalog::Catalog;
use super::ids::GroupId;
use super::key::Key;
use super::message::PartitionLease;
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

    /// If a consumer dies, others must claim when its lease ends. The heartbeat reads the end of a
    /// long lease in time; the end of a short one is announced.
    pub(super) fn announce_lease_ends<'l>(&self, leases: impl Iterator<Item = &'l PartitionLease>) {
        let far = self.database.heartbeat() * 2;
        let mut announced: HashSet<GroupId> = HashSet::new();
        for lease in leases {
            if lease.lease_time < far && announced.insert(lease.group_id) {
                self.notifier.leased(lease.queue_id, lease.group_id, lease.lease_time);
            }
        }
    }
}
