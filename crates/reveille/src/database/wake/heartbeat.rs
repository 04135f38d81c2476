//! One statement every twelve seconds: the whole idle load of a process.
//!
//! Owns its text, composed of our own part and the surveys of all sources, and what its answer means. Promises that a hint
//! which was lost with a dying peer, and a due that nobody announced, are found by the next beat at the latest.
//!
//! Next: [`super::listener`], which sends it.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use reveille_wake::Cause;
use tokio_postgres::{Client, Error, Row};

use super::roster::Roster;
use super::work_source::WorkSource;
use super::{Node, NodeId};
use crate::database::SchemaName;
use crate::database::connection::Param;
use crate::database::statements::HEARTBEAT;

/// Work that has been ready for longer than this was announced by nobody; younger work may have its hint on the way.
const UNANNOUNCED_AFTER_S: f64 = 1.0;

/// The statement for the sources there are, prepared on one connection.
#[derive(Debug)]
pub(super) struct Heartbeat {
    version: u64,
    sources: Vec<Arc<dyn WorkSource>>,
    statement: tokio_postgres::Statement,
}

/// What a beat said about the other nodes.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Peers(pub(super) BTreeSet<NodeId>);

impl Heartbeat {
    pub(super) async fn prepare(client: &Client, schema: &SchemaName, roster: &Roster) -> Result<Self, Error> {
        // Read first: a source that joins meanwhile makes us stale, never forgotten.
        let version = roster.version();
        let sources = roster.all();
        let text = compose(&HEARTBEAT.text(schema), schema, sources.iter().map(|source| source.survey()));
        let statement = client.prepare(&text).await?;
        Ok(Self { version, sources, statement })
    }

    pub(super) fn is_stale(&self, roster: &Roster) -> bool {
        self.version != roster.version()
    }

    /// Sends it, and rings and arms what the answer calls for.
    pub(super) async fn beat(&self, client: &Client, node: &Node, echo: &str) -> Result<Peers, Error> {
        let horizon = (node.heartbeat * 2).as_secs_f64();
        let silence = node.silence().as_secs_f64();
        let waited: Vec<Vec<String>> = self.sources.iter().map(|source| source.waited()).collect();
        let id = node.id.number();
        let mut params: Vec<Param<'_>> = vec![&id, &node.name, &node.channel, &echo, &silence];
        if !self.sources.is_empty() {
            params.push(&horizon);
        }
        params.extend(waited.iter().map(|keys| keys as Param<'_>));
        let rows = client.query(&self.statement, &params).await?;
        for (number, source) in self.sources.iter().enumerate() {
            follow(source.as_ref(), &waited[number], &findings(&rows, number));
        }
        let peers = rows.iter().filter(|row| row.get::<_, i32>(0) < 0);
        Ok(Peers(peers.filter_map(|row| row.get::<_, Option<&str>>(1)?.parse().ok()).collect()))
    }
}

/// Our own part, and the surveys behind it: `$6` is the horizon, `$7` and on are the waited keys of each source.
fn compose<'a>(own: &str, schema: &SchemaName, surveys: impl Iterator<Item = &'a str>) -> String {
    let surveys = surveys.enumerate().map(|(number, survey)| {
        let survey = survey
            .replace("{schema}", &schema.quoted())
            .replace("{keys}", &format!("${}::text[]", number + 7))
            .replace("{horizon}", "$6::float8");
        format!("select {number}, key, due_s from ({survey}) as survey_{number}")
    });
    let parts: Vec<String> = std::iter::once(own.trim_end().to_owned()).chain(surveys).collect();
    parts.join("\nunion all\n")
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_source_has_its_own_keys_and_all_share_the_horizon() {
        let schema = "odd name".parse().unwrap();
        let survey = "select key, due_s from {schema}.todo where key = any({keys}) and due_s < {horizon}";

        let text = compose("select 1\n", &schema, [survey, survey].into_iter());

        assert!(text.contains("select 0, key, due_s from (select key, due_s from \"odd name\".todo"), "{text}");
        assert!(text.contains("any($7::text[])") && text.contains("any($8::text[])"), "{text}");
        assert_eq!(text.matches("$6::float8").count(), 2);
    }
}
