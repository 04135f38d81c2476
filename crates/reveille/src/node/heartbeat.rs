//! One statement every twelve seconds: the whole idle load of a process.
//!
//! Owns its text, composed of our own part and the surveys of all sources, and the meaning of its
//! answer. Promises that a hint which was lost with a dying node, and a due time that was not
//! announced, are found by the next beat at the latest; and that a source whose survey fails harms
//! no other: it is surveyed alone, and polls until its survey succeeds again. One statement surveys
//! 2,000 keys of a source at most, and a beat 20,000; further keys follow in the next beat.
//!
//! Next: [`super::listener`], which sends it.

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio_postgres::types::Type;
use tokio_postgres::{Client, Row};
use tracing::{info, warn};

use super::erased::{AnyKey, AnyKeys};
use super::lost::{Lost, answered};
use super::roster::{Entry, Roster, SourceNumber};
use super::statements::HEARTBEAT;
use super::survey::Places;
use super::work_source::Column;
use super::{Node, NodeId};
use crate::database::SchemaName;
use crate::database::connection::Param;

/// Keys of one source that one statement surveys: with many more it would run into its time limit.
const KEYS_AT_ONCE: usize = 2000;
/// Statements of one beat for one source.
const SURVEYS_MAX: usize = 10;
/// What rows about nodes have in the column `source`, where those of a survey have its number.
const ABOUT_NODES: i32 = -1;

/// What the heartbeat remembers from beat to beat.
#[derive(Debug, Default)]
pub(super) struct Heartbeat {
    /// Sources whose survey failed: surveyed alone, so that they cannot spoil the answer of the
    /// others.
    apart: BTreeSet<SourceNumber>,
    /// Of sources with more keys than one beat surveys, the last key that was surveyed.
    last_keys: HashMap<SourceNumber, Option<AnyKey>>,
}

/// A source, and the keys of it that a beat surveys.
struct SurveyedSource {
    entry: Entry,
    keys: Box<dyn AnyKeys>,
}

/// What one beat needs from the listener.
#[derive(Clone, Copy)]
pub(super) struct Beat<'a> {
    pub(super) client: &'a Client,
    pub(super) schema: &'a SchemaName,
    pub(super) node: &'a Node,
    pub(super) roster: &'a Roster,
    /// How long each answer may take.
    pub(super) within: Duration,
}

/// What a beat found out about the nodes.
#[derive(Debug)]
pub(super) struct Nodes {
    /// The other nodes that live.
    pub(super) peers: BTreeSet<NodeId>,
    /// Whether the other nodes took this one for dead until now, and sent it no hints.
    pub(super) was_silent: bool,
}

impl Heartbeat {
    /// Sends one beat. Wakes the keys with ready work, and notes the due times of the others.
    pub(super) async fn beat(&mut self, beat: Beat<'_>, echo: &str) -> Result<Nodes, Lost> {
        let (apart, together) = self.sources(beat.roster);
        match beat.send_common(echo, &together).await {
            Ok(nodes) => {
                for source in &together {
                    // The common statement surveyed the first 2,000 keys; statements of their own
                    // follow for the others.
                    let surveyed = beat.survey(source, source.portions().skip(1)).await;
                    self.note_survey(beat, &source.entry, surveyed)?;
                }
                self.survey_apart(beat, &apart).await?;
                Ok(nodes)
            }
            Err(refused) if refused.was_refused() && !together.is_empty() => {
                warn!(error = refused.as_error(), "the heartbeat was refused as a whole, surveying source by source");
                let nodes = beat.send_common(echo, &[]).await?;
                self.survey_apart(beat, &apart).await?;
                self.survey_apart(beat, &together).await?;
                Ok(nodes)
            }
            Err(lost) => Err(lost),
        }
    }

    /// The sources that are surveyed apart, and those that are surveyed together. Forgets those
    /// that are no longer registered.
    fn sources(&mut self, roster: &Roster) -> (Vec<SurveyedSource>, Vec<SurveyedSource>) {
        let entries = roster.entries();
        self.apart.retain(|number| entries.iter().any(|entry| entry.number == *number));
        self.last_keys.retain(|number, _| entries.iter().any(|entry| entry.number == *number));
        let sources: Vec<SurveyedSource> = entries.into_iter().map(|entry| self.with_keys(entry)).collect();
        sources.into_iter().partition(|source| self.apart.contains(&source.entry.number))
    }

    /// A source with the keys that this beat surveys: all, or those after the last one surveyed.
    fn with_keys(&mut self, entry: Entry) -> SurveyedSource {
        let last = self.last_keys.entry(entry.number).or_default();
        let keys = Arc::clone(&entry.source).waited(KEYS_AT_ONCE * SURVEYS_MAX, last);
        SurveyedSource { entry, keys }
    }

    async fn survey_apart(&mut self, beat: Beat<'_>, sources: &[SurveyedSource]) -> Result<(), Lost> {
        for source in sources {
            let surveyed = beat.survey(source, source.portions()).await;
            self.note_survey(beat, &source.entry, surveyed)?;
        }
        Ok(())
    }

    /// A source whose survey is refused is surveyed apart from now on, and polls, until a survey
    /// succeeds. Returns any other error: then the connection is lost.
    fn note_survey(&mut self, beat: Beat<'_>, entry: &Entry, surveyed: Result<(), Lost>) -> Result<(), Lost> {
        let Entry { number, source } = entry;
        match surveyed {
            Ok(()) => {
                if self.apart.remove(number) {
                    info!(source = source.name(), "the survey of a source succeeds again");
                    beat.roster.set_surveyed(entry, true, now());
                }
            }
            Err(refused) if refused.was_refused() => {
                if self.apart.insert(*number) {
                    let (source, error) = (source.name(), refused.as_error());
                    warn!(source, error, "the survey of a source fails: it is surveyed alone, and polls meanwhile");
                }
                beat.roster.set_surveyed(entry, false, now());
            }
            Err(lost) => return Err(lost),
        }
        Ok(())
    }
}

impl SurveyedSource {
    /// The keys in portions for one statement each. At least one portion, so that a failing survey
    /// is noticed also while no consumer waits.
    fn portions(&self) -> impl Iterator<Item = Range<usize>> + use<> {
        let len = self.keys.len();
        let more = (KEYS_AT_ONCE..len).step_by(KEYS_AT_ONCE).map(move |at| at..len.min(at + KEYS_AT_ONCE));
        std::iter::once(0..len.min(KEYS_AT_ONCE)).chain(more)
    }

    /// The portion that the common statement surveys.
    fn first_portion(&self) -> Range<usize> {
        self.portions().next().unwrap_or_default()
    }
}

impl Beat<'_> {
    /// The statement of every beat: the node lives, echo, other nodes, and the first portion of
    /// each of these sources.
    async fn send_common(self, echo: &str, sources: &[SurveyedSource]) -> Result<Nodes, Lost> {
        let node = self.node;
        let (id, silence, horizon) = (node.id.number(), node.silence().as_secs_f64(), self.horizon());
        let own: [Param<'_>; 5] = [&id, &node.name, &node.channel, &echo, &silence];
        let mut params: Vec<(Param<'_>, Type)> = own.into_iter().zip(HEARTBEAT.types.iter().cloned()).collect();
        params.push((&horizon, Type::FLOAT8));
        let mut text = HEARTBEAT.text(self.schema).trim_end().to_owned();
        let columns: Vec<Vec<Column>> =
            sources.iter().map(|source| source.keys.columns(source.first_portion())).collect();
        for (number, (source, columns)) in sources.iter().zip(&columns).enumerate() {
            let places = Places { schema: self.schema, horizon: own.len() + 1, columns: params.len() + 1 };
            text.push_str("\nunion all\n");
            text.push_str(&source.entry.source.survey().part(number, columns, &places));
            params.extend(columns.iter().map(parameter));
        }
        let rows = answered(self.within, self.client.query_typed(&text, &params)).await?;
        for (number, source) in sources.iter().enumerate() {
            source.keys.act_on(source.first_portion(), &findings(&rows, number));
        }
        Ok(nodes(&rows, silence))
    }

    /// Surveys these portions of one source, with a statement for each.
    async fn survey(self, source: &SurveyedSource, portions: impl Iterator<Item = Range<usize>>) -> Result<(), Lost> {
        let (horizon, places) = (self.horizon(), Places { schema: self.schema, horizon: 1, columns: 2 });
        for portion in portions {
            let columns = source.keys.columns(portion.clone());
            let text = source.entry.source.survey().part(0, &columns, &places);
            let own: [(Param<'_>, Type); 1] = [(&horizon, Type::FLOAT8)];
            let params: Vec<_> = own.into_iter().chain(columns.iter().map(parameter)).collect();
            let rows = answered(self.within, self.client.query_typed(&text, &params)).await?;
            source.keys.act_on(portion, &findings(&rows, 0));
        }
        Ok(())
    }

    fn horizon(self) -> f64 {
        (self.node.heartbeat * 2).as_secs_f64()
    }
}

fn parameter(column: &Column) -> (Param<'_>, Type) {
    (&*column.values, column.array.clone())
}

/// Reads the rows about nodes. The one without a number is this node's own: how long ago its last
/// heartbeat was, null for never.
fn nodes(rows: &[Row], silence: f64) -> Nodes {
    let mut nodes = Nodes { peers: BTreeSet::new(), was_silent: false };
    for row in rows.iter().filter(|row| row.get::<_, i32>("source") == ABOUT_NODES) {
        match row.get::<_, Option<i64>>("number") {
            Some(peer) => _ = nodes.peers.insert(NodeId::of(peer)),
            None => nodes.was_silent = row.get::<_, Option<f64>>("due_s").is_none_or(|seconds| seconds > silence),
        }
    }
    nodes
}

/// What the survey of this number found: the soonest due time of each key.
fn findings(rows: &[Row], number: usize) -> HashMap<i64, f64> {
    let mut found = HashMap::new();
    for row in rows.iter().filter(|row| usize::try_from(row.get::<_, i32>(0)) == Ok(number)) {
        if let (Some(ordinal), Some(due_s)) = (row.get(1), row.get::<_, Option<f64>>(2)) {
            found.entry(ordinal).and_modify(|soonest: &mut f64| *soonest = soonest.min(due_s)).or_insert(due_s);
        }
    }
    found
}

fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}
