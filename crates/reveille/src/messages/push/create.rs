//! Finds the partitions of a push, and creates the queues and partitions that do not exist.
//!
//! Most are created before the push reaches its flush, by a batcher with a connection of its own:
//! the new names of many callers share a statement. Promises that a call with very many new names
//! does not delay a push without new names, and delays another push with new names by one statement
//! at most. The flush itself re-creates what was deleted since.
//!
//! Next: [`super::flush`].

use std::collections::HashMap;
use std::sync::Arc;

use super::entry::Entry;
use super::portion::send_in_portions;
use crate::batcher::{Batcher, BatcherOptions, Failed, Work};
use crate::database::{Connection, DatabaseError};
use crate::messages::catalog::{Catalog, PartitionEntry, PartitionPath};
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
        for index in take_cached(&self.context.catalog, entries) {
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

/// The same within a flush: most entries have their partitions already, and those of the others
/// were deleted since.
pub(super) async fn find_partitions_again(
    context: &MessagesContext,
    connection: &Connection,
    entries: &mut [Entry],
) -> Result<(), DatabaseError> {
    let unknown = take_cached(&context.catalog, entries);
    if unknown.is_empty() {
        return Ok(());
    }
    let paths: Vec<PartitionPath> = unknown.iter().map(|index| entries[*index].path()).collect();
    let created = create(context, connection, &paths).await?;
    for (index, partition) in unknown.into_iter().zip(created) {
        entries[index].partition = partition;
    }
    Ok(())
}

/// Gives entries the partitions that this process has cached. Returns the positions of the entries
/// that still have none.
fn take_cached(catalog: &Catalog, entries: &mut [Entry]) -> Vec<usize> {
    let mut unknown = Vec::new();
    for index in 0..entries.len() {
        let entry = &entries[index];
        if entry.is_decided() || entry.partition.is_some() {
            continue;
        }
        let cached =
            partition_before(entries, index).or_else(|| catalog.recall(&entry.item.queue, &entry.item.partition));
        if cached.is_none() {
            unknown.push(index);
        }
        entries[index].partition = cached;
    }
    unknown
}

/// The partition of the entry before this one, if it is for the same: entries of a call often share
/// one. A decided entry keeps the partition of an earlier round, whose queue may have been deleted
/// since.
fn partition_before(entries: &[Entry], index: usize) -> Option<Arc<PartitionEntry>> {
    let before = &entries[index.checked_sub(1)?];
    if before.is_decided() || !before.is_for_the_same(&entries[index]) {
        return None;
    }
    before.partition.clone()
}

/// Creates the partitions that do not exist, with their queues. Returns each in its place; `None`
/// if its queue was deleted meanwhile.
async fn create(
    context: &MessagesContext,
    connection: &Connection,
    wanted: &[PartitionPath],
) -> Result<Vec<Option<Arc<PartitionEntry>>>, DatabaseError> {
    let created = context.catalog.make(connection, wanted).await?;
    // Pops that wait for a queue or a partition that did not exist resolve its name again.
    context.notifier.new_names();
    Ok(created)
}

/// The partition that was created or found; `None` if its queue was deleted meanwhile.
type Created = Result<Option<Arc<PartitionEntry>>, MessagesError>;

impl Entry {
    fn assign(&mut self, created: &Created) {
        match created {
            Ok(partition) => self.partition.clone_from(partition),
            Err(error) => self.refuse(error.clone()),
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
        create(&self.context, connection, &wanted).await.map_err(|error| (error, wanted))
    }
}
