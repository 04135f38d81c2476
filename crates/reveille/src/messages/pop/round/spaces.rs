//! Step three of a round: claims of namespaces and tasks, which have many targets at once.
//!
//! First it marks new partitions ready and reads which targets are due. Then it claims there, for
//! each claim the best target first. A target where nothing was claimed is not tried again, unless
//! its cursors only skipped messages that no consumer gets.
//!
//! Next: [`super::report`].

use std::collections::{HashMap, HashSet};

use tokio::time::Instant;

use super::super::claim::{Claim, Slots, Target};
use super::ClaimRound;
use super::search::Search;
use crate::messages::error::MessagesError;

/// How often a round claims before it leaves the remaining targets to the next round.
const TRIES_MAX: usize = 8;

/// Where each claim, by its number, was tried.
type Tried = HashMap<usize, HashSet<Target>>;

impl ClaimRound<'_> {
    pub(super) async fn search_spaces(&mut self) -> Result<(), MessagesError> {
        let targets = self.claims.iter().filter(|claim| is_wide(claim)).flat_map(|claim| claim.targets.clone());
        let search = Search::of(targets, self.memory);
        if search.targets.is_empty() {
            return Ok(());
        }
        self.find_due(&search).await?;
        let mut tried_by_claim = Tried::new();
        for _ in 0..TRIES_MAX {
            let slots = self.next_slots(&search, &mut tried_by_claim);
            if slots.is_empty() {
                break;
            }
            self.claim_spaces(&slots, &mut tried_by_claim).await?;
        }
        self.note_untried(&tried_by_claim);
        let next = search.next_due(self.connection).await?;
        self.note_search(&search, next);
        Ok(())
    }

    /// Reads which targets are due, after the messages of their outboxes were moved into the logs.
    async fn find_due(&mut self, search: &Search) -> Result<(), MessagesError> {
        let outboxes = self.mark_and_read_due(search).await?;
        if !outboxes.is_empty() {
            self.move_outbox(&outboxes).await?;
            self.mark_and_read_due(search).await?;
        }
        Ok(())
    }

    async fn mark_and_read_due(&mut self, search: &Search) -> Result<Vec<String>, MessagesError> {
        self.memory.searching(&search.queues(), Instant::now());
        let (more_to_mark, next) = tokio::join!(search.mark_ready(self.connection), search.next_due(self.connection));
        self.report.more_to_mark.extend(more_to_mark?);
        Ok(self.note_search(search, next?))
    }

    /// Slots for each claim that still waits, at the best due target where it was not tried.
    fn next_slots(&mut self, search: &Search, tried_by_claim: &mut Tried) -> Slots {
        let mut slots = Slots::default();
        for claim in self.claims.iter().filter(|claim| is_wide(claim)) {
            let tried_targets = tried_by_claim.entry(claim.number).or_default();
            let due = |target: &&Target| self.report.is_due(**target) && !tried_targets.contains(*target);
            if let Some(target) = claim.targets.iter().find(due).copied() {
                tried_targets.insert(target);
                slots.add_any(claim, target.group, search.due_since(target));
                self.report.read_ready.insert(target.group);
            }
        }
        slots
    }

    async fn claim_spaces(&mut self, slots: &Slots, tried_by_claim: &mut Tried) -> Result<(), MessagesError> {
        let rows = slots.claim(self.connection, self.context).await?;
        self.note_acked(&rows);
        let skipped = self.take(&rows).await?;
        // There may be a message behind those that were skipped; a pop that does not wait must get
        // it.
        for tried_targets in tried_by_claim.values_mut() {
            tried_targets.retain(|target| !skipped.contains(&target.group));
        }
        Ok(())
    }

    fn note_untried(&mut self, tried_by_claim: &Tried) {
        for claim in self.claims.iter().filter(|claim| is_wide(claim)) {
            let Some(tried_targets) = tried_by_claim.get(&claim.number) else { continue };
            let due = claim.targets.iter().filter(|target| self.report.is_due(**target));
            let untried: Vec<Target> = due.filter(|target| !tried_targets.contains(*target)).copied().collect();
            self.report.untried.extend(untried);
        }
    }
}

/// Whether it still waits, and has more than one target.
fn is_wide(claim: &Claim) -> bool {
    claim.waits() && claim.targets.len() > 1
}
