//! Creates the queues and partitions of a push, before the push reaches its flush.
//!
//! Owns the batcher that creates them, with a connection of its own: the new names of many callers
//! share a statement. Promises that a call with very many new names does not delay a push without
//! new names, and delays another push with new names by one statement at most. If a queue is
//! deleted between here and the flush, the flush re-creates it.
//!
//! Next: [`super::flush`].

use std::collections::HashMap;
use std::sync::Arc;

use super::entry::{Entry, Verdict};
use super::plan::take_cached_partitions;
use super::portion::send_in_portions;
use crate::batcher::{Batcher, BatcherOptions, Failed, Work};
use crate::database::Connection;
use crate::messages::catalog::{PartitionEntry, PartitionPath};
use crate::messages::context::MessagesContext;
use crate::messages::error::MessagesError;

/// The connections of the batcher.
pub(in crate::messages) const CREATORS: [&str; 1] = ["make"];
/// How many partitions one statement creates.
const CREATED_MAX: usize = 500;
/// How many bytes a name takes besides its letters, roughly.
const OVERHEAD: usize = 64;

#[derive(Debug)]
pub(super) struct PartitionCreator {
    context: Arc<MessagesContext>,
    batcher: Batcher<Creation>,
}

impl PartitionCreator {
    pub(super) fn new(context: &Arc<MessagesContext>) -> Self {
        let options = BatcherOptions { items_max: CREATED_MAX, in_order: false, ..BatcherOptions::default() };
        let batcher = context.service.batcher(CREATORS[0], options, Creation { context: Arc::clone(context) });
        Self { context: Arc::clone(context), batcher }
    }

    /// Finds the partition of every entry, and creates it if it does not exist. Entries whose
    /// partition cannot be created are refused.
    pub(super) async fn find_partitions(&self, entries: &mut [Entry]) {
        let mut unknown: HashMap<PartitionPath, Vec<usize>> = HashMap::new();
        for index in take_cached_partitions(&self.context.catalog, entries) {
            unknown.entry(entries[index].path()).or_default().push(index);
        }
        let (paths, indices): (Vec<_>, Vec<_>) = unknown.into_iter().unzip();
        let created = send_in_portions(&self.batcher, paths, |paths| paths.len().min(CREATED_MAX)).await;
        for (indices, created) in indices.into_iter().zip(created) {
            for index in indices {
                entries[index].assign(&created);
            }
        }
    }
}

/// The partition that was created or found; `None` if its queue was deleted meanwhile.
type Created = Result<Option<Arc<PartitionEntry>>, MessagesError>;

impl Entry {
    fn assign(&mut self, created: &Created) {
        match created {
            Ok(partition) => self.partition.clone_from(partition),
            Err(error) => self.verdict = Some(Verdict::Refused(error.clone())),
        }
    }
}

/// The work of the batcher.
struct Creation {
    context: Arc<MessagesContext>,
}

impl Work for Creation {
    type Item = PartitionPath;
    type Answer = Option<Arc<PartitionEntry>>;
    type Error = MessagesError;

    fn weight(path: &PartitionPath) -> usize {
        path.queue.as_str().len() + path.partition.as_str().len() + OVERHEAD
    }

    /// May be repeated: what exists is not created again.
    async fn run(
        &self,
        connection: &mut Connection,
        wanted: Vec<PartitionPath>,
    ) -> Result<Vec<Self::Answer>, Failed<PartitionPath>> {
        match self.context.catalog.make(connection, &wanted).await {
            Ok(created) => {
                // Pops that wait for a queue or a partition that did not exist resolve its name
                // again.
                self.context.notifier.new_names();
                Ok(created)
            }
            Err(error) => Err((error, wanted)),
        }
    }
}
