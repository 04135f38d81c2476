//! One statement every twelve seconds: the whole idle load of a process.
//!
//! Owns its text, composed of our own part and the surveys of all sources, and what its answer means. Promises that a hint
//! which was lost with a dying peer, and a due that nobody announced, are found by the next beat at the latest; and that a
//! source whose survey fails harms nobody else: it is asked apart, and watches until it can be asked again. One statement asks about
//! 2,000 keys of a source at most, and a beat about 20,000; with more, the others have their turn in the next beat.
//!
//! Next: [`super::listener`], which sends it.

use std::collections::{BTreeSet, HashMap};
use std::time::{Duration, Instant};

use reveille_wake::Cause;
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Row};
use tracing::{info, warn};

use super::lost::{Lost, answered};
use super::roster::{Entry, Roster, SourceNumber};
use super::statements::HEARTBEAT;
use super::work_source::WorkSource;
use super::{Node, NodeId};
use crate::database::SchemaName;
use crate::database::connection::Param;

/// Work that has been ready for longer than this was announced by nobody; younger work may have its hint on the way.
const UNANNOUNCED_AFTER_S: f64 = 1.0;

/// Keys of one source that one statement asks about: with many more it would run into its time limit.
const KEYS_AT_ONCE: usize = 2000;
/// Statements of one beat for one source.
const SURVEYS_MAX: usize = 10;

/// What the heartbeat remembers from beat to beat.
#[derive(Debug, Default)]
pub(super) struct Heartbeat {
    /// Sources whose survey failed: asked alone, so that they cannot spoil the answer of the others.
    apart: BTreeSet<SourceNumber>,
    /// Sources with more keys than one beat asks about, and the last key that was asked about.
    marks: HashMap<SourceNumber, String>,
}

/// The keys of a source that a beat asks about: first some, together with the other sources, then the rest by itself.
#[derive(Debug, Default)]
struct Share {
    first: Vec<String>,
    rest: Vec<String>,
}

/// Whom a beat is for.
#[derive(Clone, Copy)]
pub(super) struct Asking<'a> {
    pub(super) client: &'a Client,
    pub(super) schema: &'a SchemaName,
    pub(super) node: &'a Node,
    pub(super) roster: &'a Roster,
    /// How long each answer may take.
    pub(super) within: Duration,
}

/// What a beat said about the nodes.
#[derive(Debug)]
pub(super) struct Nodes {
    /// The others that live.
    pub(super) peers: BTreeSet<NodeId>,
    /// Whether they took us for dead until now: what they had to say, they did not say to us.
    pub(super) was_silent: bool,
}

impl Heartbeat {
    /// Sends it, and rings and arms what the answer calls for.
    pub(super) async fn beat(&mut self, asking: Asking<'_>, echo: &str) -> Result<Nodes, Lost> {
        let entries = asking.roster.entries();
        self.apart.retain(|number| entries.iter().any(|entry| entry.number == *number));
        self.marks.retain(|number, _| entries.iter().any(|entry| entry.number == *number));
        let (alone, together): (Vec<Entry>, Vec<Entry>) =
            entries.into_iter().partition(|entry| self.apart.contains(&entry.number));
        let shares: Vec<Share> = together.iter().map(|entry| self.share(entry)).collect();
        match asking.own_and_surveys(echo, &together, &shares).await {
            Ok(nodes) => {
                for (entry, share) in together.iter().zip(&shares).filter(|(_, share)| !share.rest.is_empty()) {
                    self.note(asking, entry, asking.survey(entry.source.as_ref(), &share.rest).await)?;
                }
                self.ask_apart(asking, &alone).await?;
                Ok(nodes)
            }
            Err(refused) if refused.was_refused() && !together.is_empty() => {
                warn!(error = refused.as_error(), "the heartbeat was refused as a whole, asking source by source");
                let nodes = asking.own_and_surveys(echo, &[], &[]).await?;
                self.ask_apart(asking, &alone).await?;
                self.ask_apart(asking, &together).await?;
                Ok(nodes)
            }
            Err(lost) => Err(lost),
        }
    }

    async fn ask_apart(&mut self, asking: Asking<'_>, entries: &[Entry]) -> Result<(), Lost> {
        for entry in entries {
            let Share { mut first, rest } = self.share(entry);
            first.extend(rest);
            self.note(asking, entry, asking.survey(entry.source.as_ref(), &first).await)?;
        }
        Ok(())
    }

    /// How the survey of a source went.
    fn note(&mut self, asking: Asking<'_>, entry: &Entry, surveyed: Result<(), Lost>) -> Result<(), Lost> {
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
                    warn!(source, error, "the survey of a source fails: it is asked apart, and watches meanwhile");
                }
                asking.roster.set_surveyed(entry, false, now());
            }
            Err(lost) => return Err(lost),
        }
        Ok(())
    }

    /// What this beat asks a source: everything, or what comes after the beat before.
    fn share(&mut self, Entry { number, source }: &Entry) -> Share {
        let mut keys = source.waited();
        let most = KEYS_AT_ONCE * SURVEYS_MAX;
        if keys.len() > most {
            keys.sort_unstable();
            let asked = self.marks.get(number).map_or(0, |mark| keys.partition_point(|key| key <= mark));
            let next = asked % keys.len();
            keys.rotate_left(next);
            keys.truncate(most);
            self.marks.extend(keys.last().map(|last| (*number, last.clone())));
        } else {
            self.marks.remove(number);
        }
        let rest = keys.split_off(keys.len().min(KEYS_AT_ONCE));
        Share { first: keys, rest }
    }
}

impl Asking<'_> {
    async fn own_and_surveys(self, echo: &str, entries: &[Entry], shares: &[Share]) -> Result<Nodes, Lost> {
        let node = self.node;
        let (id, silence, horizon) = (node.id.number(), node.silence().as_secs_f64(), self.horizon());
        let own: [Param<'_>; 5] = [&id, &node.name, &node.channel, &echo, &silence];
        let mut params: Vec<(Param<'_>, Type)> = own.into_iter().zip(HEARTBEAT.types.iter().cloned()).collect();
        params.push((&horizon, Type::FLOAT8));
        params.extend(shares.iter().map(|share| (&share.first as Param<'_>, Type::TEXT_ARRAY)));
        let surveys = entries.iter().map(|entry| entry.source.survey());
        let text = compose(&HEARTBEAT.text(self.schema), self.schema, surveys);
        let rows = answered(self.within, self.client.query_typed(&text, &params)).await?;
        for (number, (Entry { source, .. }, share)) in entries.iter().zip(shares).enumerate() {
            follow(source.as_ref(), &share.first, &findings(&rows, number));
        }
        Ok(nodes(&rows, silence))
    }

    /// Asks about these keys of one source, some at a time; at least once, so that a survey that fails is known for one.
    async fn survey(self, source: &dyn WorkSource, waited: &[String]) -> Result<(), Lost> {
        let horizon = self.horizon();
        let text = survey(0, source.survey(), self.schema, &Places { horizon: 1, keys: 2 });
        let (some, more) = waited.split_at(waited.len().min(KEYS_AT_ONCE));
        for keys in std::iter::once(some).chain(more.chunks(KEYS_AT_ONCE)) {
            let params: [(Param<'_>, Type); 2] = [(&horizon, Type::FLOAT8), (&keys, Type::TEXT_ARRAY)];
            let rows = answered(self.within, self.client.query_typed(&text, &params)).await?;
            follow(source, keys, &findings(&rows, 0));
        }
        Ok(())
    }

    fn horizon(self) -> f64 {
        (self.node.heartbeat * 2).as_secs_f64()
    }
}

/// Our own part, and the surveys behind it: `$6` is the horizon, `$7` and on are the waited keys of each source.
fn compose<'a>(own: &str, schema: &SchemaName, surveys: impl Iterator<Item = &'a str>) -> String {
    let places = |number| Places { horizon: 6, keys: number + 7 };
    let surveys = surveys.enumerate().map(|(number, text)| survey(number, text, schema, &places(number)));
    let parts: Vec<String> = std::iter::once(own.trim_end().to_owned()).chain(surveys).collect();
    parts.join("\nunion all\n")
}

/// Which parameters of the statement a survey reads.
struct Places {
    horizon: usize,
    keys: usize,
}

/// Cast, because a survey may bring keys that are no text; on lines of its own, because it may end in a comment.
fn survey(number: usize, text: &str, schema: &SchemaName, places: &Places) -> String {
    let text = text
        .replace("{schema}", &schema.quoted())
        .replace("{keys}", &format!("${}::text[]", places.keys))
        .replace("{horizon}", &format!("${}::float8", places.horizon));
    format!("select {number}, key::text, due_s::float8 from (\n{text}\n) as survey_{number}")
}

fn nodes(rows: &[Row], silence: f64) -> Nodes {
    let own = rows.iter().filter(|row| row.get::<_, i32>(0) < 0);
    let mut nodes = Nodes { peers: BTreeSet::new(), was_silent: false };
    for row in own {
        match row.get::<_, Option<&str>>(1) {
            Some(peer) => nodes.peers.extend(peer.parse::<NodeId>()),
            None => nodes.was_silent = row.get::<_, Option<f64>>(2).is_none_or(|seconds| seconds > silence),
        }
    }
    nodes
}

fn findings(rows: &[Row], number: usize) -> HashMap<&str, f64> {
    let own = rows.iter().filter(|row| usize::try_from(row.get::<_, i32>(0)) == Ok(number));
    own.filter_map(|row| Some((row.get::<_, Option<&str>>(1)?, row.get::<_, Option<f64>>(2)?))).collect()
}

fn follow(source: &dyn WorkSource, waited: &[String], found: &HashMap<&str, f64>) {
    for key in waited {
        let due_s = found.get(key.as_str()).copied();
        source.next_due(key, due_s.filter(|due_s| *due_s > 0.0).map(seconds));
        match due_s {
            Some(due_s) if due_s <= -UNANNOUNCED_AFTER_S => source.ring(Some(key), Cause::Heartbeat),
            Some(due_s) if due_s <= 0.0 => source.ring(Some(key), Cause::Due),
            Some(_) | None => {}
        }
    }
}

fn seconds(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
}

fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_source_has_its_own_keys_and_all_share_the_horizon() {
        let schema = "odd name".parse().unwrap();
        let survey = "select key, due_s from {schema}.todo where key = any({keys}) and due_s < {horizon} -- cheap";

        let text = compose("select 1\n", &schema, [survey, survey].into_iter());

        assert!(text.contains("from (\nselect key, due_s from \"odd name\".todo"), "{text}");
        assert!(text.contains("-- cheap\n) as survey_0"), "{text}");
        assert!(text.contains("any($7::text[])") && text.contains("any($8::text[])"), "{text}");
        assert_eq!(text.matches("$6::float8").count(), 2);
    }
}
