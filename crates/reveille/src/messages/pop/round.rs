//! One claim round: claims messages for every demand that waits.
//!
//! A round has four steps:
//! 1. `without_search`: claim where messages are known to be, for demands of one target;
//! 2. `ready`: mark new partitions ready, and claim ready ones, for those that step one left
//!    without messages;
//! 3. `spaces`: the same for demands of namespaces and tasks, which have many targets;
//! 4. `report`: report to the dispatcher what each key has, and to the memory what the round
//!    showed.
//!
//! Owns the connection of all claims. Promises that a key is reported empty only after the outbox
//! of its queue was moved into the log, and that claims which reach no consumer are given back.
//!
//! Next: [`super::claim`], [`super::rows`]; then [`super::give_back`], for claims that no demand
//! takes.

mod ready;
mod report;
mod search;
mod spaces;
mod without_search;

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use reveille_wake::{Round, RoundFailed, RoundResult, Source};
use tokio_postgres::Row;
use uuid::Uuid;

use super::claim::{Claim, Target};
use super::give_back::{self, Acked, SentClaims};
use super::memory::Memory;
use super::request::Demand;
use super::resolve::names;
use super::rows::ClaimRow;
use crate::database::outage::warn_unless_away;
use crate::database::{Connection, Purpose};
use crate::messages::context::MessagesContext;
use crate::messages::error::MessagesError;
use crate::messages::group::Groups;
use crate::messages::ids::{GroupId, LeaseId, PartitionId};
use crate::messages::key::Key;
use crate::messages::outbox;
use crate::messages::settle::{Settlement, settle_empty};
use report::Report;
use search::{NextDue, Search};

/// Claims messages for the dispatcher.
pub(super) struct PopSource {
    context: Arc<MessagesContext>,
    groups: Arc<Groups>,
    rounds: tokio::sync::Mutex<Rounds>,
    failure: Mutex<String>,
}

/// What a round hands on to the next.
#[derive(Default)]
struct Rounds {
    /// Opened by the first round, and again after it broke.
    connection: Option<Connection>,
    memory: Memory,
}

/// A round under way.
struct ClaimRound<'r> {
    context: &'r Arc<MessagesContext>,
    connection: &'r Connection,
    memory: &'r mut Memory,
    claims: Vec<Claim>,
    /// What the claims acked by popping: to be put back if their consumers do not get it.
    acked: Vec<Acked>,
    report: Report,
}

impl Source for PopSource {
    type Key = Key;
    type Request = Demand;
    type Lease = Box<Claim>;

    async fn claim(&self, round: Round<Key, Demand>) -> Result<RoundResult<Key, Box<Claim>>, RoundFailed> {
        let mut rounds = self.rounds.lock().await;
        let result = self.run(&mut rounds, &round).await;
        result.map_err(|error| {
            warn_unless_away!(&error, %error, "could not claim messages");
            *self.failure() = with_causes(&error);
            RoundFailed
        })
    }

    async fn release(&self, claims: Vec<Box<Claim>>) {
        let claims = claims.into_iter().filter(|claim| claim.has_messages()).map(|claim| *claim);
        give_back::give_back(&self.context, claims.collect()).await;
    }

    fn suits(&self, claim: &Box<Claim>, demand: &Demand) -> bool {
        claim.suits(demand)
    }
}

impl PopSource {
    pub(super) fn new(context: Arc<MessagesContext>, groups: Arc<Groups>) -> Self {
        Self { context, groups, rounds: tokio::sync::Mutex::default(), failure: Mutex::default() }
    }

    /// Why the last failed round failed.
    pub(super) fn last_failure(&self) -> MessagesError {
        MessagesError::Unavailable(self.failure().clone())
    }

    async fn run(
        &self,
        Rounds { connection, memory }: &mut Rounds,
        round: &Round<Key, Demand>,
    ) -> Result<RoundResult<Key, Box<Claim>>, MessagesError> {
        let connection = self.open(connection).await?;
        let keys: HashSet<&Key> = round.keys.iter().map(|woken| &woken.key).collect();
        let mut claim_round = self.begin(connection, memory, &keys, round);
        claim_round.check_names(&keys, round).await?;
        // Noted before the claims are sent: if this future is dropped, or the claims fail, the
        // leases are released by their nonces.
        let sent = SentClaims::new(&self.context, claim_round.nonces());
        if let Err(error) = claim_round.claim().await {
            give_back::start_putting_back(&self.context, claim_round.acked);
            return Err(error);
        }
        // A refused claim has messages that cannot be opened. Its consumer gets the error, its
        // leases are released, and what it acked is put back.
        let refused = claim_round.refused();
        give_back::start_putting_back(&self.context, claim_round.acked_under(&refused));
        sent.received_except(refused.into_iter().map(|lease| lease.0).collect());
        Ok(self.finish(claim_round, &keys))
    }

    /// The connection of the rounds before, unless it broke.
    async fn open<'c>(&self, kept: &'c mut Option<Connection>) -> Result<&'c Connection, MessagesError> {
        let connection = match kept.take().filter(|connection| !connection.is_closed()) {
            Some(connection) => connection,
            None => self.context.database.connection(Purpose::Dedicated(super::CONNECTION_NAMES[0])).await?,
        };
        Ok(kept.insert(connection))
    }

    fn begin<'r>(
        &'r self,
        connection: &'r Connection,
        memory: &'r mut Memory,
        keys: &HashSet<&Key>,
        round: &Round<Key, Demand>,
    ) -> ClaimRound<'r> {
        let claims = round.demands.iter().enumerate().map(|(number, demand)| Claim::new(number, demand, keys));
        let (claims, report) = (claims.collect(), Report::of(&round.keys));
        ClaimRound { context: &self.context, connection, memory, claims, acked: Vec::new(), report }
    }

    /// Reports what the round showed, to the dispatcher and to the memory.
    fn finish(&self, round: ClaimRound<'_>, keys: &HashSet<&Key>) -> RoundResult<Key, Box<Claim>> {
        let ClaimRound { report, memory, claims, .. } = round;
        self.groups.forget(&report.gone_groups());
        let targets: Vec<Target> = keys.iter().copied().filter_map(Target::of).collect();
        let result = report.result(&targets, claims);
        report.update(memory, &targets, &result.more);
        result
    }

    fn failure(&self) -> MutexGuard<'_, String> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for PopSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PopSource").finish_non_exhaustive()
    }
}

impl ClaimRound<'_> {
    async fn claim(&mut self) -> Result<(), MessagesError> {
        self.claim_without_search().await?;
        self.claim_ready().await?;
        self.search_spaces().await
    }

    /// The nonces of all claims that may be sent.
    fn nonces(&self) -> Vec<Uuid> {
        self.claims.iter().filter(|claim| !claim.targets.is_empty()).map(|claim| claim.lease.0).collect()
    }

    /// The claims whose consumers get an error.
    fn refused(&self) -> HashSet<LeaseId> {
        self.claims.iter().filter(|claim| claim.is_refused()).map(|claim| claim.lease).collect()
    }

    /// Takes what these claims acked by popping.
    fn acked_under(&mut self, claims: &HashSet<LeaseId>) -> Vec<Acked> {
        let mut acked = std::mem::take(&mut self.acked);
        acked.retain(|acked| claims.contains(&acked.claim));
        acked
    }

    /// Finds out which names mean something else now. The claims that wait for them end here.
    async fn check_names(&mut self, keys: &HashSet<&Key>, round: &Round<Key, Demand>) -> Result<(), MessagesError> {
        let mut changed = names::changed(self.connection, keys.iter().copied()).await?;
        if !changed.outboxes.is_empty() {
            self.move_outbox(&changed.outboxes).await?;
            self.context.notifier.new_names();
            changed = names::changed(self.connection, keys.iter().copied()).await?;
        }
        for (claim, demand) in self.claims.iter_mut().zip(&round.demands) {
            if demand.keys.iter().any(|key| changed.keys.contains(key)) {
                claim.names_changed();
            }
        }
        self.report.names_changed = changed.keys;
        Ok(())
    }

    /// Notes what a claim acked by popping, before anything can end the round.
    fn note_acked(&mut self, rows: &[Row]) {
        for row in rows.iter().map(ClaimRow).filter(|row| row.is_leased()) {
            if let Some(claim) = self.claims.get(row.claim()).filter(|claim| claim.demand.auto_ack) {
                self.acked.push(row.acked(claim.lease));
            }
        }
    }

    /// Takes what a statement claimed. Returns the groups whose cursors skipped messages
    /// that no consumer gets: deleted, expired or dead. A message may be ready behind those.
    async fn take(&mut self, rows: &[Row]) -> Result<HashSet<GroupId>, MessagesError> {
        if rows.is_empty() {
            return Ok(HashSet::new());
        }
        let mut skipped = self.add_leases(rows).await?;
        let leased = self.claims.iter().filter(|claim| !claim.demand.auto_ack);
        self.context.announce_lease_ends(leased.flat_map(|claim| &claim.partitions));
        skipped.extend(self.skip_empty_leases().await?);
        self.report.skipped.extend(&skipped);
        Ok(skipped)
    }

    /// Adds a lease to its claim for each partition, with the messages that can be opened. Returns
    /// the groups with a cursor that moved without a lease.
    async fn add_leases(&mut self, rows: &[Row]) -> Result<HashSet<GroupId>, MessagesError> {
        let partitions: Vec<PartitionId> = rows.iter().map(|row| ClaimRow(row).partition()).collect();
        let entries = self.context.catalog.describe(&self.context.database, &partitions).await?;
        let mut skipped = HashSet::new();
        for row in rows.iter().map(ClaimRow) {
            let (Some(claim), Some(entry)) = (self.claims.get_mut(row.claim()), entries.get(&row.partition())) else {
                continue; // the queue was deleted meanwhile, and its messages with it
            };
            if !row.is_leased() {
                skipped.insert(row.group());
                continue;
            }
            let lease = (!claim.demand.auto_ack).then_some(claim.lease);
            if let Err(error) = row.add_to(&mut claim.partitions, entry, lease, &self.context.seal) {
                claim.refuse(error);
            }
        }
        Ok(skipped)
    }

    /// A lease that has only deleted messages brings a consumer nothing: it is settled here, and
    /// the cursor moves on. Returns the groups with such leases.
    async fn skip_empty_leases(&mut self) -> Result<Vec<GroupId>, MessagesError> {
        let (mut groups, mut empty) = (Vec::new(), Vec::new());
        for claim in self.claims.iter_mut().filter(|claim| !claim.is_refused()) {
            for lease in claim.partitions.extract_if(.., |lease| lease.messages.is_empty()) {
                groups.push(lease.group_id);
                empty.push(Settlement::complete(&lease));
            }
        }
        settle_empty(self.connection, &empty).await?;
        Ok(groups)
    }

    /// A search has read when its targets are due next. Returns the queues whose outbox must be
    /// moved before a claim may be reported empty.
    fn note_search(&mut self, search: &Search, mut next: Vec<NextDue>) -> Vec<String> {
        search.remember_costs(self.memory, &next);
        search.come_back_for_the_start(self.memory, &mut next);
        self.report.merge_next_due(&self.claims, next)
    }

    /// Moves what callers' transactions have pushed into the logs, and announces it: other groups
    /// and nodes wait for it too.
    async fn move_outbox(&self, queues: &[String]) -> Result<(), MessagesError> {
        let names: Vec<&str> = queues.iter().map(String::as_str).collect();
        for (queue, partition) in outbox::move_ready(self.connection, &names).await? {
            self.context.notifier.pushed(queue, &[partition]);
        }
        Ok(())
    }
}

/// The error and its causes, in one line.
fn with_causes(error: &MessagesError) -> String {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}
