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

use super::erased::{AnyKeys, Mark};
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

/// What the heartbeat remembers from beat to beat.
#[derive(Debug, Default)]
pub(super) struct Heartbeat {
    /// Sources whose survey failed: surveyed alone, so that they cannot spoil the answer of the
    /// others.
    apart: BTreeSet<SourceNumber>,
    /// Sources with more keys than one beat surveys, and the last key that was surveyed.
    marks: HashMap<SourceNumber, Option<Mark>>,
}

/// A source, and the keys of it that a beat surveys.
struct Asked {
    entry: Entry,
    keys: Box<dyn AnyKeys>,
}

/// What a beat needs from the listener.
#[derive(Clone, Copy)]
pub(super) struct Asking<'a> {
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
    pub(super) async fn beat(&mut self, asking: Asking<'_>, echo: &str) -> Result<Nodes, Lost> {
        let entries = asking.roster.entries();
        self.apart.retain(|number| entries.iter().any(|entry| entry.number == *number));
        self.marks.retain(|number, _| entries.iter().any(|entry| entry.number == *number));
        let asked = entries.into_iter().map(|entry| self.asked(entry)).collect::<Vec<_>>();
        let (alone, together): (Vec<Asked>, Vec<Asked>) =
            asked.into_iter().partition(|asked| self.apart.contains(&asked.entry.number));
        match asking.own_and_surveys(echo, &together).await {
            Ok(nodes) => {
                for asked in &together {
                    self.note(asking, asked, asking.survey(asked, asked.portions().skip(1)).await)?;
                }
                self.ask_apart(asking, &alone).await?;
                Ok(nodes)
            }
            Err(refused) if refused.was_refused() && !together.is_empty() => {
                warn!(error = refused.as_error(), "the heartbeat was refused as a whole, surveying source by source");
                let nodes = asking.own_and_surveys(echo, &[]).await?;
                self.ask_apart(asking, &alone).await?;
                self.ask_apart(asking, &together).await?;
                Ok(nodes)
            }
            Err(lost) => Err(lost),
        }
    }

    async fn ask_apart(&mut self, asking: Asking<'_>, sources: &[Asked]) -> Result<(), Lost> {
        for asked in sources {
            self.note(asking, asked, asking.survey(asked, asked.portions()).await)?;
        }
        Ok(())
    }

    /// Notes whether the survey of a source succeeded.
    fn note(&mut self, asking: Asking<'_>, asked: &Asked, surveyed: Result<(), Lost>) -> Result<(), Lost> {
        let entry = &asked.entry;
        let Entry { number, source } = entry;
        match surveyed {
            Ok(()) => {
                if self.apart.remove(number) {
                    info!(source = source.name(), "the survey of a source succeeds again");
                    asking.roster.set_surveyed(entry, true, now());
                }
            }
            Err(refused) if refused.was_refused() => {
                if self.apart.insert(*number) {
                    let (source, error) = (source.name(), refused.as_error());
                    warn!(source, error, "the survey of a source fails: it is surveyed alone, and polls meanwhile");
                }
                asking.roster.set_surveyed(entry, false, now());
            }
            Err(lost) => return Err(lost),
        }
        Ok(())
    }

    /// The keys of a source that this beat surveys: all, or those after the last one surveyed.
    fn asked(&mut self, entry: Entry) -> Asked {
        let mark = self.marks.entry(entry.number).or_default();
        let keys = Arc::clone(&entry.source).waited(KEYS_AT_ONCE * SURVEYS_MAX, mark);
        Asked { entry, keys }
    }
}

impl Asked {
    /// The keys in portions for one statement each. At least one portion, so that a failing survey
    /// is noticed also while no consumer waits.
    fn portions(&self) -> impl Iterator<Item = Range<usize>> + use<> {
        let len = self.keys.len();
        let more = (KEYS_AT_ONCE..len).step_by(KEYS_AT_ONCE).map(move |at| at..len.min(at + KEYS_AT_ONCE));
        std::iter::once(0..len.min(KEYS_AT_ONCE)).chain(more)
    }

    fn first(&self) -> Range<usize> {
        0..self.keys.len().min(KEYS_AT_ONCE)
    }
}

impl Asking<'_> {
    async fn own_and_surveys(self, echo: &str, sources: &[Asked]) -> Result<Nodes, Lost> {
        let node = self.node;
        let (id, silence, horizon) = (node.id.number(), node.silence().as_secs_f64(), self.horizon());
        let own: [Param<'_>; 5] = [&id, &node.name, &node.channel, &echo, &silence];
        let mut params: Vec<(Param<'_>, Type)> = own.into_iter().zip(HEARTBEAT.types.iter().cloned()).collect();
        params.push((&horizon, Type::FLOAT8));
        let mut text = HEARTBEAT.text(self.schema).trim_end().to_owned();
        let columns: Vec<Vec<Column>> = sources.iter().map(|asked| asked.keys.columns(asked.first())).collect();
        for (number, (asked, columns)) in sources.iter().zip(&columns).enumerate() {
            let places = Places { schema: self.schema, horizon: own.len() + 1, columns: params.len() + 1 };
            text.push_str("\nunion all\n");
            text.push_str(&asked.entry.source.survey().part(number, columns, &places));
            params.extend(columns.iter().map(parameter));
        }
        let rows = answered(self.within, self.client.query_typed(&text, &params)).await?;
        for (number, asked) in sources.iter().enumerate() {
            asked.keys.follow(asked.first(), &findings(&rows, number));
        }
        Ok(nodes(&rows, silence))
    }

    /// Surveys these keys of one source.
    async fn survey(self, asked: &Asked, portions: impl Iterator<Item = Range<usize>>) -> Result<(), Lost> {
        let (horizon, places) = (self.horizon(), Places { schema: self.schema, horizon: 1, columns: 2 });
        for some in portions {
            let columns = asked.keys.columns(some.clone());
            let text = asked.entry.source.survey().part(0, &columns, &places);
            let own: [(Param<'_>, Type); 1] = [(&horizon, Type::FLOAT8)];
            let params: Vec<_> = own.into_iter().chain(columns.iter().map(parameter)).collect();
            let rows = answered(self.within, self.client.query_typed(&text, &params)).await?;
            asked.keys.follow(some, &findings(&rows, 0));
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

fn nodes(rows: &[Row], silence: f64) -> Nodes {
    let own = rows.iter().filter(|row| row.get::<_, i32>(0) < 0);
    let mut nodes = Nodes { peers: BTreeSet::new(), was_silent: false };
    for row in own {
        match row.get::<_, Option<i64>>(1) {
            Some(peer) => _ = nodes.peers.insert(NodeId::of(peer)),
            None => nodes.was_silent = row.get::<_, Option<f64>>(2).is_none_or(|seconds| seconds > silence),
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
