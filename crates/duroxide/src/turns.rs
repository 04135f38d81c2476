//! The queue of turns: instances that have messages.
//!
//! Owns the claim of instances for orchestration slots. Promises that an instance is held by one
//! slot at a time, that the slot gets the history as the last committed turn left it, and that
//! nothing that cannot be read is dropped in silence.
//!
//! Next: [`rows`], which makes turns of what the claim returned; [`item`]; then [`settle`].

pub(crate) mod columns;
pub(crate) mod item;
pub(crate) mod kv;
mod rows;
pub(crate) mod settle;

use std::time::Duration;

use duroxide::providers::DispatcherCapabilityFilter;
use reveille::database::DatabaseError;
use reveille::service::{Column, Survey};
use tokio_postgres::types::Type;
use tracing::warn;

use crate::number::{packed, seconds, signed};
use crate::queue::{ClaimFailed, Claimed, Queue, QueueKey, QueueRequest};
use crate::statements::{ABANDON_TURN, CLAIM_TURNS, SURVEY_TURNS, TURN_CONTENT};
use crate::store::Store;
use crate::token::{TurnToken, nonces};
use rows::{Summary, fill, read};

/// How often a claim that lost every race is made again at once.
const RACES: usize = 3;

/// The queue itself.
#[derive(Debug)]
pub(crate) struct Turns {
    pub(crate) store: Store,
}

/// Which turns may be taken: those pinned to versions of duroxide within this range, or to none.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct TurnKey {
    versions: Option<(i64, i64)>,
}

impl TurnKey {
    /// `None` when the filter lets nothing pass. Of several ranges the first counts, as duroxide
    /// has it.
    pub(crate) fn of(filter: Option<&DispatcherCapabilityFilter>) -> Option<Self> {
        let Some(filter) = filter else { return Some(Self { versions: None }) };
        let range = filter.supported_duroxide_versions.first()?;
        Some(Self { versions: Some((packed(&range.min), packed(&range.max))) })
    }
}

impl QueueKey for TurnKey {
    fn columns(keys: &[Self]) -> Vec<Column> {
        let (from, to): (Vec<_>, Vec<_>) = keys.iter().map(|key| key.versions.unzip()).unzip();
        vec![Column::new("from", Type::INT8_ARRAY, from), Column::new("to", Type::INT8_ARRAY, to)]
    }
}

/// For how long a turn is taken.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct TurnRequest {
    pub(crate) lock: Duration,
}

impl QueueRequest for TurnRequest {
    fn lock(&self) -> Duration {
        self.lock
    }
}

/// A turn as it was read, not yet understood.
#[derive(Debug)]
pub(crate) struct Turn {
    pub(crate) token: TurnToken,
    pub(crate) messages: Vec<String>,
    pub(crate) attempt: u32,
    /// Name and version; `None` for an instance without a committed turn.
    pub(crate) instance: Option<(String, Option<String>)>,
    pub(crate) execution: i64,
    pub(crate) history: Vec<String>,
    /// Key, value, when it was set.
    pub(crate) values: Vec<(String, String, i64)>,
}

impl Turn {
    fn empty(token: TurnToken) -> Self {
        let (messages, history, values) = (Vec::new(), Vec::new(), Vec::new());
        Self { token, messages, attempt: 0, instance: None, execution: 1, history, values }
    }
}

impl Queue for Turns {
    type Key = TurnKey;
    type Request = TurnRequest;
    type Lease = Turn;
    const NAME: &'static str = "turns";

    fn survey() -> Survey {
        SURVEY_TURNS
    }

    async fn claim(
        &self,
        wanted: &[(&TurnKey, usize)],
        request: &TurnRequest,
    ) -> Result<Vec<Claimed<Turn>>, ClaimFailed<Turn>> {
        let mut claimed = Vec::with_capacity(wanted.len());
        for (key, want) in wanted {
            match self.claim_one(key, request, *want).await {
                Ok(one) => claimed.push(one),
                Err(error) => return Err(ClaimFailed::after(claimed, error)),
            }
        }
        Ok(claimed)
    }

    async fn give_back(&self, leases: Vec<Turn>) {
        for turn in leases {
            let TurnToken { nonce, instance } = &turn.token;
            let params: [reveille::database::Param<'_>; 4] = [instance, nonce, &None::<f64>, &true];
            if let Err(error) = self.store.attempt(&ABANDON_TURN, &params).await {
                warn!(%error, ?instance, "could not give back a turn that no slot got; its lock will end by itself");
            }
        }
    }
}

impl Turns {
    async fn claim_one(
        &self,
        key: &TurnKey,
        request: &TurnRequest,
        want: usize,
    ) -> Result<Claimed<Turn>, DatabaseError> {
        let (from, to) = key.versions.unzip();
        let mut tries = 0;
        loop {
            let (tokens, limit) = (nonces(want), signed(want as u64));
            let params: [reveille::database::Param<'_>; 5] = [&tokens, &limit, &seconds(request.lock), &from, &to];
            let rows = self.store.attempt(&CLAIM_TURNS, &params).await?;
            let Some(Summary { picked, contended, due }) = rows.first().map(Summary::of) else {
                return Ok(Claimed::nothing());
            };
            let (turns, outdated) = read(&rows);
            tries += 1;
            if turns.is_empty() && picked > 0 && tries < RACES {
                continue;
            }
            let leases = if outdated.is_empty() { turns } else { self.read_content(turns, outdated).await? };
            return Ok(Claimed { leases, filled: picked >= limit, contended, due });
        }
    }

    /// Reads what the claim could not see of the outdated turns. If that fails all are given back.
    async fn read_content(&self, turns: Vec<Turn>, outdated: Vec<TurnToken>) -> Result<Vec<Turn>, DatabaseError> {
        let (tokens, instances): (Vec<String>, Vec<String>) =
            outdated.into_iter().map(|token| (token.nonce, token.instance)).unzip();
        match self.store.attempt(&TURN_CONTENT, &[&tokens, &instances]).await {
            Ok(rows) => Ok(fill(turns, &rows)),
            Err(error) => {
                self.give_back(turns).await;
                Err(error)
            }
        }
    }
}
