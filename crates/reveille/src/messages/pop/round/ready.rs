//! Step two of a round: claims that have one target, and that step one could not serve.
//!
//! One round trip of three statements: mark new partitions ready, claim ready ones, read the next
//! due time. The round trip is repeated when it may have missed a message: the outbox held some, or
//! cursors only skipped messages that no consumer gets. A pop that does not wait must not return
//! empty because of a deleted message.
//!
//! Next: [`super::spaces`], for claims with many targets.

use tokio::time::Instant;

use super::super::claim::{Claim, Slots, Target};
use super::ClaimRound;
use super::search::Search;
use crate::messages::error::MessagesError;

/// How often a round makes the round trip at most.
const TRIES_MAX: usize = 8;

impl ClaimRound<'_> {
    pub(super) async fn claim_ready(&mut self) -> Result<(), MessagesError> {
        for _ in 0..TRIES_MAX {
            self.report.skipped.clear();
            let outboxes = Box::pin(self.claim_ready_once()).await?;
            if !outboxes.is_empty() {
                self.move_outbox(&outboxes).await?;
                continue;
            }
            let may_find_more = self.claims.iter().any(|claim| self.report.may_find(claim));
            if self.report.skipped.is_empty() || !may_find_more {
                break;
            }
        }
        Ok(())
    }

    /// Returns the queues whose outbox must be moved before a claim may be reported empty.
    async fn claim_ready_once(&mut self) -> Result<Vec<String>, MessagesError> {
        let seeking: Vec<(&Claim, Target)> = self.seeking().collect();
        if seeking.is_empty() {
            return Ok(Vec::new());
        }
        let search = Search::of(seeking.iter().map(|(_, target)| *target), self.memory);
        // Within one statement, a group has slots of one kind.
        let (mut any, mut named) = (Slots::default(), Slots::default());
        for (claim, target) in seeking {
            let slots = if target.is_any_partition() { &mut any } else { &mut named };
            slots.add(claim, target, search.due_since(target));
        }
        let read = search.targets.iter().filter(|target| target.is_any_partition());
        self.report.read_ready.extend(read.map(|target| target.group));
        self.memory.searching(&search.queues(), Instant::now());
        let (connection, context) = (self.connection, self.context);
        let (more_to_mark, any, named, next) = tokio::join!(
            search.mark_ready(connection),
            any.claim(connection, context),
            named.claim(connection, context),
            search.next_due(connection),
        );
        for rows in [&any, &named].into_iter().flatten() {
            self.note_acked(rows);
        }
        let (any, named) = (any?, named?);
        self.take(&any).await?;
        self.take(&named).await?;
        self.report.more_to_mark.extend(more_to_mark?);
        Ok(self.note_search(&search, next?))
    }

    /// The claims with one target for which a search may find something.
    fn seeking(&self) -> impl Iterator<Item = (&Claim, Target)> {
        let seeking = self.claims.iter().filter(|claim| self.report.may_find(claim));
        seeking.filter_map(|claim| match claim.targets[..] {
            [target] => Some((claim, target)),
            _ => None,
        })
    }
}
