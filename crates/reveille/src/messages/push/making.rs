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
use super::portion::stops;
use crate::batcher::{Batcher, BatcherOptions, Failed, Work};
use crate::database::Connection;
use crate::messages::catalog::{PartitionEntry, PartitionPath};
use crate::messages::context::MessagesContext;
use crate::messages::error::MessagesError;

/// The connections of the batcher.
pub(in crate::messages) const MAKERS: [&str; 1] = ["make"];
/// How many partitions one statement creates.
const MADE_MAX: usize = 500;
/// How many bytes a name takes besides its letters, roughly.
const OVERHEAD: usize = 64;

#[derive(Debug)]
pub(super) struct Maker {
    context: Arc<MessagesContext>,
    batcher: Batcher<Making>,
}

impl Maker {
    pub(super) fn new(context: &Arc<MessagesContext>) -> Self {
        let options = BatcherOptions { items_max: MADE_MAX, in_order: false, ..BatcherOptions::default() };
        let batcher = context.service.batcher(MAKERS[0], options, Making { context: Arc::clone(context) });
        Self { context: Arc::clone(context), batcher }
    }

    /// Finds the partition of every entry, and creates it if it does not exist. Entries whose
    /// partition cannot be created are refused.
    pub(super) async fn find_partitions(&self, entries: &mut [Entry]) {
        let mut unknown: HashMap<PartitionPath, Vec<usize>> = HashMap::new();
        for index in self.context.recall(entries) {
            unknown.entry(entries[index].path()).or_default().push(index);
        }
        let mut unknown: Vec<(PartitionPath, Vec<usize>)> = unknown.into_iter().collect();
        // One portion after the other, so that other callers' portions come in between.
        while !unknown.is_empty() {
            let rest = unknown.split_off(unknown.len().min(MADE_MAX));
            let (paths, entries_of): (Vec<_>, Vec<_>) = unknown.into_iter().unzip();
            let made = self.batcher.send(paths).await;
            let failed = made.iter().find_map(|made| made.as_ref().err().filter(|error| stops(error)).cloned());
            for (indices, made) in entries_of.iter().zip(made) {
                settle(entries, indices, &made);
            }
            unknown = rest;
            if let Some(error) = failed {
                for (_, indices) in unknown.drain(..) {
                    settle(entries, &indices, &Err(error.clone()));
                }
            }
        }
    }
}

/// The partition that was created or found; `None` if its queue was deleted meanwhile.
type Made = Result<Option<Arc<PartitionEntry>>, MessagesError>;

/// Notes one partition in the entries that are for it.
fn settle(entries: &mut [Entry], indices: &[usize], made: &Made) {
    for index in indices {
        match made {
            Ok(partition) => entries[*index].partition.clone_from(partition),
            Err(error) => entries[*index].verdict = Some(Verdict::Refused(error.clone())),
        }
    }
}

impl MessagesContext {
    /// Sets the partitions that this process remembers. Returns the entries that are left without.
    pub(super) fn recall(&self, entries: &mut [Entry]) -> Vec<usize> {
        let mut unknown = Vec::new();
        for index in 0..entries.len() {
            let (before, rest) = entries.split_at_mut(index);
            let entry = &mut rest[0];
            if entry.verdict.is_some() || entry.partition.is_some() {
                continue;
            }
            // Not the partition of a neighbour that is answered already: its queue may be gone.
            let neighbour = before.last().filter(|last| last.verdict.is_none() && last.is_for_the_same(entry));
            entry.partition = match neighbour.and_then(|last| last.partition.clone()) {
                Some(partition) => Some(partition),
                None => self.catalog.recall(&entry.item.queue, &entry.item.partition),
            };
            if entry.partition.is_none() {
                unknown.push(index);
            }
        }
        unknown
    }
}

/// The work of the batcher.
struct Making {
    context: Arc<MessagesContext>,
}

impl Work for Making {
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
            Ok(made) => {
                // Pops that wait for a queue or a partition that did not exist resolve its name
                // again.
                self.context.notifier.new_names();
                Ok(made)
            }
            Err(error) => Err((error, wanted)),
        }
    }
}
