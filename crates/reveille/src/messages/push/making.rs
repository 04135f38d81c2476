//! New queues and partitions are made before a push stands in line with the others.
//!
//! Owns the batcher that makes them, with a connection of its own: many callers' new names are one
//! statement, and a call with very many of them keeps nobody waiting who brings none, and others
//! with new names for one statement at most. What is deleted between here and the flush, the flush
//! makes anew.
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

/// The connections that make them.
pub(in crate::messages) const MAKERS: [&str; 1] = ["make"];
/// Partitions made by one statement, and asked for at once.
const MADE_MAX: usize = 500;
/// What a name takes besides its letters, roughly.
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

    /// Every entry gets its partition; what is not there is made. One that cannot be made refuses
    /// its entries.
    pub(super) async fn place(&self, entries: &mut [Entry]) {
        let mut unknown: HashMap<PartitionPath, Vec<usize>> = HashMap::new();
        for index in self.context.recall(entries) {
            unknown.entry(entries[index].path()).or_default().push(index);
        }
        let mut unknown: Vec<(PartitionPath, Vec<usize>)> = unknown.into_iter().collect();
        // One portion after the other, so that those of others come between.
        while !unknown.is_empty() {
            let rest = unknown.split_off(unknown.len().min(MADE_MAX));
            let (paths, places): (Vec<_>, Vec<_>) = unknown.into_iter().unzip();
            let made = self.batcher.send(paths).await;
            let failed = made.iter().find_map(|made| made.as_ref().err().filter(|error| stops(error)).cloned());
            for (indices, made) in places.iter().zip(made) {
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

/// A partition that was to be made.
type Made = Result<Option<Arc<PartitionEntry>>, MessagesError>;

/// What became of one partition, for the entries that want it.
fn settle(entries: &mut [Entry], indices: &[usize], made: &Made) {
    for index in indices {
        match made {
            Ok(place) => entries[*index].place.clone_from(place),
            Err(error) => entries[*index].verdict = Some(Verdict::Refused(error.clone())),
        }
    }
}

impl MessagesContext {
    /// What is remembered of the entries' partitions, and which entries are left without.
    pub(super) fn recall(&self, entries: &mut [Entry]) -> Vec<usize> {
        let mut unknown = Vec::new();
        for index in 0..entries.len() {
            let (before, rest) = entries.split_at_mut(index);
            let entry = &mut rest[0];
            if entry.verdict.is_some() || entry.place.is_some() {
                continue;
            }
            // Of a neighbour that is answered already, a twin for one, the place may be that of a
            // queue that is gone.
            let neighbour = before.last().filter(|last| last.verdict.is_none() && last.is_for_the_same(entry));
            entry.place = match neighbour.and_then(|last| last.place.clone()) {
                Some(place) => Some(place),
                None => self.catalog.recall(&entry.item.queue, &entry.item.partition),
            };
            if entry.place.is_none() {
                unknown.push(index);
            }
        }
        unknown
    }
}

/// Makes what many callers want at once.
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

    /// Done twice, it is as if done once.
    async fn run(
        &self,
        connection: &mut Connection,
        wanted: Vec<PartitionPath>,
    ) -> Result<Vec<Self::Answer>, Failed<PartitionPath>> {
        match self.context.catalog.make(connection, &wanted).await {
            Ok(made) => {
                // Whoever waits for a queue or a partition that was not there looks for its name
                // again.
                self.context.notifier.new_queue();
                Ok(made)
            }
            Err(error) => Err((error, wanted)),
        }
    }
}
