//! One look for everybody who waits.
//!
//! First what needs no search: partitions that were just pushed to, and groups of which the last look left something due.
//! That is all when everything else about a group is known: an earlier look searched it whole, every ring since said where,
//! and all of that was claimed. Then, for whoever is still without, one round trip: spread what was pushed, claim what is due, and ask when the next
//! falls due. Nobody is told "nothing" before the outbox of foreign transactions was looked into.
//!
//! Next: [`super::rows`], which reads what was claimed; [`super::homeless`], for what finds no taker.

mod report;
mod search;

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use reveille_wake::{LookFailed, Looked, Round, Source};
use tokio_postgres::Row;
use tracing::warn;

use super::homeless::{self, Afloat};
use super::request::{Ask, Found, Spot, Wish};
use super::resolve::names;
use super::rows::Claimed;
use crate::database::{Connection, Purpose};
use crate::messages::error::MessagesError;
use crate::messages::ground::Ground;
use crate::messages::group::Groups;
use crate::messages::ids::{LeaseId, PartitionId};
use crate::messages::key::Key;
use crate::messages::settle::{Settlement, pass_whole};
use report::Report;
use search::Pulse;

pub(super) struct Looker {
    ground: Arc<Ground>,
    groups: Arc<Groups>,
    /// The lane's own connection, opened with the first look and again when it broke.
    line: tokio::sync::Mutex<Option<Connection>>,
    pulse: Mutex<Pulse>,
    failure: Mutex<String>,
}

impl Source for Looker {
    type Key = Key;
    type Ask = Ask;
    type Lease = Found;

    async fn look(&self, round: Round<Key, Ask>) -> Result<Looked<Key, Found>, LookFailed> {
        let mut line = self.line.lock().await;
        let looked = self.look_on(&mut line, &round).await;
        looked.map_err(|error| {
            warn!(%error, "could not look for messages");
            *self.failure() = told(&error);
            LookFailed
        })
    }

    async fn release(&self, leases: Vec<Found>) {
        let hauls = leases.into_iter().filter_map(|found| match found {
            Found::Batch(haul) => Some(haul),
            Found::Again | Found::Refused(_) => None,
        });
        homeless::give_back(&self.ground, hauls.collect()).await;
    }

    fn suits(&self, found: &Found, ask: &Ask) -> bool {
        match found {
            Found::Batch(haul) => haul.suits(ask),
            Found::Again | Found::Refused(_) => false,
        }
    }
}

impl Looker {
    pub(super) fn new(ground: Arc<Ground>, groups: Arc<Groups>) -> Self {
        let (line, pulse, failure) = (tokio::sync::Mutex::default(), Mutex::default(), Mutex::default());
        Self { ground, groups, line, pulse, failure }
    }

    /// What went wrong when a look last failed.
    pub(super) fn last_failure(&self) -> MessagesError {
        MessagesError::Unavailable(self.failure().clone())
    }

    async fn look_on(
        &self,
        line: &mut Option<Connection>,
        round: &Round<Key, Ask>,
    ) -> Result<Looked<Key, Found>, MessagesError> {
        let connection = match line {
            Some(connection) if !connection.is_closed() => connection,
            _ => line.insert(self.ground.database.connection(Purpose::Lane(super::LOOKS[0])).await?),
        };
        let called: HashSet<&Key> = round.keys.iter().map(|rung| &rung.key).collect();
        let mut wishes: Vec<Wish> = round.asked.iter().map(|asked| wish(asked, &called)).collect();
        let mut report = Report::of(&round.keys);

        report.changed = self.resolve_names(connection, &called, round, &mut wishes).await?;
        let claiming = wishes.iter().filter(|wish| !wish.spots.is_empty()).map(|wish| wish.lease.0).collect();
        let afloat = Afloat::new(&self.ground, claiming);
        if let Err(error) = self.claim(connection, &mut wishes, &mut report).await {
            homeless::put_back_acked(&self.ground, wishes);
            return Err(error);
        }
        afloat.landed_but(wishes.iter().filter(|wish| wish.refused.is_some()).map(|wish| wish.lease.0).collect());

        self.groups.forget(&report.gone());
        let looked = report.looked(&called, wishes);
        self.pulse().note(&called, &looked.more, &report);
        Ok(looked)
    }

    async fn claim(
        &self,
        connection: &Connection,
        wishes: &mut [Wish],
        report: &mut Report,
    ) -> Result<(), MessagesError> {
        self.claim_known(connection, wishes, report).await?;
        self.search(connection, wishes, report).await?;
        self.search_spaces(connection, wishes, report).await
    }

    async fn resolve_names(
        &self,
        connection: &Connection,
        called: &HashSet<&Key>,
        round: &Round<Key, Ask>,
        wishes: &mut [Wish],
    ) -> Result<HashSet<Key>, MessagesError> {
        let mut changed = names::changed(connection, called.iter().copied()).await?;
        if !changed.sent.is_empty() {
            self.move_outbox(connection, &changed.sent).await?;
            self.ground.bell.new_queue();
            changed = names::changed(connection, called.iter().copied()).await?;
        }
        if !changed.keys.is_empty() {
            for (wish, asked) in wishes.iter_mut().zip(&round.asked) {
                wish.again = asked.keys.iter().any(|key| changed.keys.contains(key));
            }
        }
        Ok(changed.keys)
    }

    /// Puts what was claimed into the hands of those it was claimed for.
    async fn take(
        &self,
        connection: &Connection,
        rows: &[Row],
        wishes: &mut [Wish],
        report: &mut Report,
    ) -> Result<(), MessagesError> {
        if rows.is_empty() {
            return Ok(());
        }
        let partitions: Vec<PartitionId> = rows.iter().map(|row| Claimed(row).partition()).collect();
        let entries = self.ground.catalog.describe(&self.ground.database, &partitions).await?;
        for claimed in rows.iter().map(Claimed) {
            let (Some(wish), Some(entry)) = (wishes.get_mut(claimed.consumer()), entries.get(&claimed.partition()))
            else {
                continue; // the queue was deleted in this moment, and the claim with it
            };
            if !claimed.is_leased() {
                report.passed(claimed.group());
                continue;
            }
            let lease = (!wish.ask.auto).then_some(wish.lease);
            if let Err(error) = claimed.add_to(&mut wish.claims, entry, lease, &self.ground.seal) {
                wish.refused = Some(error);
            }
        }
        let leases = wishes.iter().filter(|wish| !wish.ask.auto).flat_map(|wish| &wish.claims);
        self.ground.announce_ends(leases);
        self.pass_hollow(connection, wishes, report).await
    }

    /// A lease of nothing but deleted messages has nothing for anybody: it is acked here, and the cursor goes on.
    async fn pass_hollow(
        &self,
        connection: &Connection,
        wishes: &mut [Wish],
        report: &mut Report,
    ) -> Result<(), MessagesError> {
        let mut hollow = Vec::new();
        for wish in wishes.iter_mut().filter(|wish| wish.refused.is_none()) {
            wish.claims.retain(|claim| {
                if !claim.messages.is_empty() {
                    return true;
                }
                report.passed(claim.group_id);
                hollow.push(Settlement::complete(claim));
                false
            });
        }
        Ok(pass_whole(connection, &hollow).await?)
    }

    fn pulse(&self) -> MutexGuard<'_, Pulse> {
        self.pulse.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn failure(&self) -> MutexGuard<'_, String> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Looker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Looker").finish_non_exhaustive()
    }
}

fn wish(asked: &reveille_wake::Asked<Key, Ask>, called: &HashSet<&Key>) -> Wish {
    let spots = asked.keys.iter().filter(|key| called.contains(key)).filter_map(Spot::of).collect();
    Wish {
        id: asked.id,
        ask: Arc::clone(&asked.ask),
        spots,
        lease: LeaseId::random(),
        since: tokio::time::Instant::now(),
        claims: Vec::new(),
        again: false,
        refused: None,
    }
}

/// The error and its causes, in one line.
fn told(error: &MessagesError) -> String {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}
