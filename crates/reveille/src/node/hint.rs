//! The hints that nodes send each other: which source has work, under which keys, and perhaps after
//! which delay.
//!
//! Owns the text of a notification. Promises that every payload is either understood or ignored:
//! every role that can connect to the database can notify, so a payload is untrusted. It carries no
//! data and causes nothing but a claim round.
//!
//! ```text
//! hint <origin>          echo <origin> <number>
//! jobs mail              the first carries hints, one line each: source, the source's own text,
//! jobs mail 1500         delay in ms; a line without such a text is about all keys of the source,
//! *                      and a star about everything
//! ```
//!
//! Next: [`super::inbox`] for those that arrive, [`super::broadcaster`] for those that leave.

use std::collections::BTreeSet;
use std::time::Duration;

use sha2::{Digest, Sha256};

use super::NodeId;
use crate::database::SchemaName;

/// PostgreSQL takes 7999 bytes.
pub(super) const PAYLOAD_BYTES_MAX: usize = 7900;

/// Longer sources and keys are not written out.
const WORD_BYTES_MAX: usize = 512;
/// More different hints than this become one that says "everything".
const HINTS_MAX: usize = 4096;

/// One hint.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Line {
    /// Everything.
    All,
    /// Every key of one source.
    Source(String),
    /// A text that the source itself can read.
    About { source: String, hint: String, delay: Option<Duration> },
}

/// Different hints that wait together.
#[derive(Debug, Default)]
pub(super) struct HintSet(BTreeSet<Line>);

impl HintSet {
    pub(super) fn add(&mut self, hints: impl IntoIterator<Item = Line>) {
        self.0.extend(hints);
        if self.0.len() > HINTS_MAX {
            *self = Self::everything();
        }
    }

    /// The one hint that says "everything".
    pub(super) fn everything() -> Self {
        Self(BTreeSet::from([Line::All]))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Line> {
        self.0.iter()
    }
}

/// The payload of a notification.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Payload {
    /// There may be work. `origin` is `None` for producers that are no node, such as a function
    /// called from SQL.
    Hints { origin: Option<NodeId>, hints: Vec<Line> },
    /// The proof that a link works.
    Echo { origin: NodeId, number: u64 },
}

/// The one channel of a schema. A hash, because the name of a schema may fill the 63 bytes a
/// channel has.
pub(super) fn channel(schema: &SchemaName) -> String {
    let digest = Sha256::digest(schema.as_str().as_bytes());
    let short = digest.iter().take(8).fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
    format!("reveille_{short:016x}")
}

impl Line {
    /// A hint that fits on one line. A text that cannot be written is widened to its source, and a
    /// source's name that cannot be written to everything.
    pub(super) fn about(source: &str, hint: &str, delay: Option<Duration>) -> Self {
        match (is_word(source), is_word(hint)) {
            (true, true) => Self::About { source: source.to_owned(), hint: hint.to_owned(), delay },
            (true, false) => Self::Source(source.to_owned()),
            (false, _) => Self::All,
        }
    }

    fn line(&self) -> String {
        match self {
            Self::All => "*".to_owned(),
            Self::Source(source) => source.clone(),
            Self::About { source, hint, delay: None } => format!("{source} {hint}"),
            Self::About { source, hint, delay: Some(delay) } => format!("{source} {hint} {}", delay.as_millis()),
        }
    }

    fn parse(line: &str) -> Option<Self> {
        let mut words = line.split(' ');
        let hint = match (words.next()?, words.next(), words.next()) {
            ("*", None, None) => Self::All,
            ("" | "*", _, _) | (_, None, Some(_)) => return None,
            (source, None, None) => Self::Source(source.to_owned()),
            (source, Some(hint), delay) => {
                let delay = delay.map(|delay| delay.parse().map(Duration::from_millis)).transpose().ok()?;
                Self::About { source: source.to_owned(), hint: hint.to_owned(), delay }
            }
        };
        words.next().is_none().then_some(hint)
    }
}

/// Whether the text can be read back as it was written. A line's end may be trimmed, so control
/// characters are not allowed.
fn is_word(text: &str) -> bool {
    !text.is_empty()
        && text != "*"
        && text.len() <= WORD_BYTES_MAX
        && !text.contains(|c: char| c == ' ' || c.is_control())
}

/// The payloads for these hints, each within the limit; more than `most` of them become one that
/// says "everything".
pub(super) fn payloads(origin: NodeId, hints: &[Line], most: usize) -> Vec<String> {
    let first_line = format!("hint {origin}");
    let mut all = vec![first_line.clone()];
    for line in hints.iter().map(Line::line) {
        let fits = all.last().is_some_and(|payload| payload.len() + line.len() < PAYLOAD_BYTES_MAX);
        if !fits {
            all.push(first_line.clone());
        }
        if let Some(payload) = all.last_mut() {
            payload.push('\n');
            payload.push_str(&line);
        }
    }
    if all.len() > most { vec![format!("{first_line}\n*")] } else { all }
}

pub(super) fn echo(origin: NodeId, number: u64) -> String {
    format!("echo {origin} {number}")
}

/// `None` for a payload that no node sends. Lines that make no sense are left out.
pub(super) fn parse(payload: &str) -> Option<Payload> {
    let (first_line, lines) = payload.split_once('\n').unwrap_or((payload, ""));
    let words: Vec<&str> = first_line.split(' ').collect();
    match words.as_slice() {
        ["echo", origin, number] => Some(Payload::Echo { origin: origin.parse().ok()?, number: number.parse().ok()? }),
        ["hint"] => Some(Payload::Hints { origin: None, hints: hints(lines) }),
        ["hint", origin] => Some(Payload::Hints { origin: Some(origin.parse().ok()?), hints: hints(lines) }),
        _ => None,
    }
}

fn hints(lines: &str) -> Vec<Line> {
    lines.lines().filter_map(Line::parse).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn key(source: &str, key: &str) -> Line {
        Line::about(source, key, None)
    }

    #[test]
    fn what_is_sent_is_understood() {
        let origin = NodeId::random();
        let hints =
            vec![key("jobs", "mail"), Line::about("jobs", "täglich", Some(Duration::from_millis(1500))), Line::All];

        let payloads = payloads(origin, &hints, 4);

        assert_eq!(payloads.len(), 1);
        assert_eq!(parse(&payloads[0]), Some(Payload::Hints { origin: Some(origin), hints }));
        assert_eq!(parse(&echo(origin, 7)), Some(Payload::Echo { origin, number: 7 }));
    }

    #[test]
    fn a_key_that_cannot_be_written_is_widened_to_its_source() {
        for awkward in ["", "*", "two words", "two\nlines", "end\r", "nul\0", &"x".repeat(513), &"ä".repeat(257)] {
            assert_eq!(key("jobs", awkward), Line::Source("jobs".to_owned()), "{awkward:?}");
            assert_eq!(key(awkward, "mail"), Line::All, "{awkward:?}");
        }
    }

    #[test]
    fn more_than_fits_becomes_everything() {
        let many: Vec<Line> = (0..5_000).map(|number| key("jobs", &format!("queue-{number}"))).collect();

        let payloads = payloads(NodeId::random(), &many, 4);

        assert_eq!(payloads.len(), 1);
        assert!(payloads[0].ends_with("\n*"), "{}", payloads[0]);
    }

    #[test]
    fn more_different_hints_than_the_bound_become_everything() {
        let mut waiting = HintSet::default();
        waiting.add((0..HINTS_MAX).map(|number| key("jobs", &number.to_string())));
        assert_eq!(waiting.iter().count(), HINTS_MAX);

        waiting.add([key("jobs", "mail")]);

        assert_eq!(waiting.iter().collect::<Vec<_>>(), [&Line::All]);
    }

    #[test]
    fn a_producer_in_sql_is_no_node() {
        let parsed = parse("hint\njobs mail");

        assert_eq!(parsed, Some(Payload::Hints { origin: None, hints: vec![key("jobs", "mail")] }));
    }

    #[test]
    fn a_channel_fits_however_long_the_schema_is() {
        let long = "x".repeat(63).parse().unwrap();

        assert!(channel(&long).len() <= 63);
        assert_ne!(channel(&long), channel(&"reveille".parse().unwrap()));
    }

    proptest! {
        #[test]
        fn a_forged_payload_is_ignored_or_understood_but_never_fatal(payload in ".{0,200}") {
            let _ = parse(&payload);
        }

        #[test]
        fn whatever_the_names_the_hint_comes_back_as_it_left(source in any::<String>(), name in any::<String>()) {
            let (origin, hints) = (NodeId::random(), vec![key(&source, &name)]);
            let parsed = payloads(origin, &hints, 4).iter().filter_map(|payload| parse(payload)).collect::<Vec<_>>();
            prop_assert_eq!(parsed, [Payload::Hints { origin: Some(origin), hints }]);
        }

        #[test]
        fn every_payload_stays_within_the_limit(lengths in proptest::collection::vec(1..512_usize, 0..100)) {
            let hints: Vec<Line> = lengths.iter().map(|length| key("jobs", &"ä".repeat(*length))).collect();
            for payload in payloads(NodeId::random(), &hints, 1_000) {
                prop_assert!(payload.len() <= PAYLOAD_BYTES_MAX);
            }
        }
    }
}
