//! What a transaction asks for, read within bounds before anything of it is done.

use bytes::Bytes;
use reveille::messages::Changes;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::api::ack::Said;
use crate::api::push::Item;
use crate::problem::Problem;
use crate::scales::TOLD;
use crate::wire::json::{Bounded, Object, Objects, parse, parse_part};

/// Pushes and acks of all operations together: they are one commit, and are kept in memory until it
/// is done.
const PARTS_MAX: usize = 10_000;

#[derive(Debug, Deserialize)]
struct Body<'b> {
    #[serde(borrow)]
    operations: Option<Bounded<&'b RawValue, PARTS_MAX>>,
    #[serde(rename = "requiredLeases")]
    required_leases: Option<Bounded<String, PARTS_MAX>>,
    /// Newer clients let these ride along in the same commit.
    #[serde(borrow)]
    kv: Option<&'b RawValue>,
    #[serde(borrow)]
    timers: Option<&'b RawValue>,
}

/// What kind of operation it is: a push has items, or is itself one; an ack is one.
#[derive(Debug, Deserialize)]
struct Kind<'b> {
    r#type: Option<String>,
    /// Read once it is known how many there may be.
    #[serde(borrow)]
    items: Option<&'b RawValue>,
}

/// What an operation was, for its place in the answer.
pub(super) enum Part {
    Push { queue: String },
    Ack { transaction_id: Option<String> },
}

impl Part {
    /// About how many bytes are told about it.
    pub(super) fn told(&self) -> usize {
        let name = match self {
            Self::Push { queue } => queue.len(),
            Self::Ack { transaction_id } => transaction_id.as_ref().map_or(0, String::len),
        };
        name + TOLD
    }
}

/// Why nothing happened.
pub(super) enum Fault {
    /// The request cannot be understood.
    Request(Problem),
    Refused(Refusal),
}

/// Why nothing happened, in the words of Queen's clients.
pub(super) struct Refusal {
    pub(super) reason: &'static str,
    pub(super) sentence: String,
}

impl Fault {
    fn bad(sentence: impl Into<String>) -> Self {
        Self::Refused(Refusal { reason: "bad_request", sentence: sentence.into() })
    }
}

/// What is to be done, and what each part of it was.
pub(super) fn read(body: &Bytes) -> Result<(Changes, Vec<Part>), Fault> {
    let said: Body<'_> = parse(body).map_err(Fault::Request)?;
    let invalid = |sentence| Err(Fault::Request(Problem::invalid(sentence)));
    let Some(Bounded(operations)) = said.operations else { return invalid("operations array required") };
    if operations.is_empty() {
        return invalid("operations array cannot be empty");
    }
    for (name, rider) in [("kv", said.kv), ("timers", said.timers)] {
        // Done without it, the transaction would be a part of what was asked for and would look
        // like the whole.
        if rider.is_some_and(says_something) {
            return Err(Fault::bad(format!("{name} is not served here; nothing of the transaction was done")));
        }
    }
    let leases = said.required_leases.map_or_else(Vec::new, |Bounded(leases)| leases);
    let mut asked = Asked { body, leases: &leases, changes: Changes::new(), parts: Vec::new() };
    for (index, operation) in operations.into_iter().enumerate() {
        asked.add(index, operation)?;
    }
    Ok((asked.changes, asked.parts))
}

/// Anything but an empty list or object.
fn says_something(rider: &RawValue) -> bool {
    let begins: String = rider.get().chars().filter(|character| !character.is_whitespace()).take(3).collect();
    !["[]", "{}"].contains(&begins.as_str())
}

/// What was asked for so far.
struct Asked<'b> {
    body: &'b Bytes,
    leases: &'b [String],
    changes: Changes,
    parts: Vec<Part>,
}

impl<'b> Asked<'b> {
    fn add(&mut self, index: usize, operation: &'b RawValue) -> Result<(), Fault> {
        let Object(kind) = part::<Object<Kind<'b>>>(index, operation)?;
        match (kind.r#type.as_deref(), kind.items) {
            (Some("push"), Some(items)) => self.push_all(index, items),
            (Some("push"), None) => self.push(index, &part::<Object<Item<'b>>>(index, operation)?.0),
            (Some("ack"), _) => self.ack(part::<Object<Said>>(index, operation)?.0),
            _ => Err(Fault::bad(format!("operations[{index}].type must be push or ack"))),
        }
    }

    fn push_all(&mut self, index: usize, items: &'b RawValue) -> Result<(), Fault> {
        let Objects(items) = part::<Objects<Item<'b>, PARTS_MAX>>(index, items)?;
        self.make_room(items.len())?;
        items.iter().try_for_each(|item| self.push(index, item))
    }

    fn push(&mut self, index: usize, item: &Item<'_>) -> Result<(), Fault> {
        self.make_room(1)?;
        let queue = item.queue.clone().ok_or_else(|| Fault::bad(format!("operations[{index}] names no queue")))?;
        let read = item.read(self.body, &queue).map_err(|problem| Fault::bad(problem.sentence))?;
        self.changes = std::mem::take(&mut self.changes).push(read);
        self.parts.push(Part::Push { queue });
        Ok(())
    }

    fn ack(&mut self, mut said: Said) -> Result<(), Fault> {
        self.make_room(1)?;
        // Old clients name the lease for all acks together; if it is one, it is this one's.
        if let ([only], None) = (self.leases, &said.lease_id) {
            said.lease_id = Some(only.clone());
        }
        let rejected = |sentence| Fault::Refused(Refusal { reason: "ack_rejected", sentence });
        let read = said.read(None).map_err(rejected)?;
        self.changes = std::mem::take(&mut self.changes).acknowledge(read);
        self.parts.push(Part::Ack { transaction_id: said.transaction_id });
        Ok(())
    }

    fn make_room(&self, more: usize) -> Result<(), Fault> {
        if self.parts.len() + more <= PARTS_MAX {
            return Ok(());
        }
        let sentence = format!("a transaction has at most {PARTS_MAX} pushes and acks, of all its operations together");
        Err(Fault::Request(Problem::invalid(sentence)))
    }
}

/// A part of an operation, or what is wrong with it.
fn part<'b, T: Deserialize<'b>>(index: usize, raw: &'b RawValue) -> Result<T, Fault> {
    parse_part(raw).map_err(|mut problem| {
        problem.sentence = format!("operations[{index}]: {}", problem.sentence).into();
        Fault::Request(problem)
    })
}
