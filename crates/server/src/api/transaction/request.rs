//! The request of a transaction, read whole and within bounds before anything of it is done.

use bytes::Bytes;
use reveille::messages::Changes;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::api::ack::AckItem;
use crate::api::push::Item;
use crate::problem::Problem;
use crate::scales::ITEM_BYTES;
use crate::wire::json::{Bounded, Object, Objects, parse, parse_part};

/// Pushes and acks of all operations together. They are kept in memory until their common commit.
const PARTS_MAX: usize = 10_000;

#[derive(Debug, Deserialize)]
struct Body<'b> {
    #[serde(borrow)]
    operations: Option<Bounded<&'b RawValue, PARTS_MAX>>,
    #[serde(rename = "requiredLeases")]
    required_leases: Option<Bounded<String, PARTS_MAX>>,
    /// Newer clients of Queen add these to the same commit.
    #[serde(borrow)]
    kv: Option<&'b RawValue>,
    #[serde(borrow)]
    timers: Option<&'b RawValue>,
}

/// The kind of an operation: a push has items, or is one itself; an ack is one.
#[derive(Debug, Deserialize)]
struct Kind<'b> {
    r#type: Option<String>,
    /// Left unparsed here: `push_all` reads them with a limit.
    #[serde(borrow)]
    items: Option<&'b RawValue>,
}

/// An operation's part of the answer.
pub(super) enum Part {
    Push { queue: String },
    Ack { transaction_id: Option<String> },
}

impl Part {
    /// About how many bytes the answer says about it.
    pub(super) fn answer_bytes(&self) -> usize {
        let name = match self {
            Self::Push { queue } => queue.len(),
            Self::Ack { transaction_id } => transaction_id.as_ref().map_or(0, String::len),
        };
        name + ITEM_BYTES
    }
}

/// Why nothing happened.
pub(super) enum Fault {
    /// The request cannot be parsed.
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

/// The changes to commit, and what each part of them was.
pub(super) fn read(body: &Bytes) -> Result<(Changes, Vec<Part>), Fault> {
    let fields: Body<'_> = parse(body).map_err(Fault::Request)?;
    let invalid = |sentence| Err(Fault::Request(Problem::invalid(sentence)));
    let Some(Bounded(operations)) = fields.operations else { return invalid("operations array required") };
    if operations.is_empty() {
        return invalid("operations array cannot be empty");
    }
    for (name, rider) in [("kv", fields.kv), ("timers", fields.timers)] {
        // Without it the transaction would do a part of the request and report success for all.
        if rider.is_some_and(is_not_empty) {
            return Err(Fault::bad(format!("{name} is not served here; nothing of the transaction was done")));
        }
    }
    let leases = fields.required_leases.map_or_else(Vec::new, |Bounded(leases)| leases);
    let mut builder = Builder { body, leases: &leases, changes: Changes::new(), parts: Vec::new() };
    for (index, operation) in operations.into_iter().enumerate() {
        builder.add(index, operation)?;
    }
    Ok((builder.changes, builder.parts))
}

/// Anything but an empty list or object.
fn is_not_empty(rider: &RawValue) -> bool {
    let begins: String = rider.get().chars().filter(|character| !character.is_whitespace()).take(3).collect();
    !["[]", "{}"].contains(&begins.as_str())
}

/// The changes of the operations read so far.
struct Builder<'b> {
    body: &'b Bytes,
    leases: &'b [String],
    changes: Changes,
    parts: Vec<Part>,
}

impl<'b> Builder<'b> {
    fn add(&mut self, index: usize, operation: &'b RawValue) -> Result<(), Fault> {
        let Object(kind) = part::<Object<Kind<'b>>>(index, operation)?;
        match (kind.r#type.as_deref(), kind.items) {
            (Some("push"), Some(items)) => self.push_all(index, items),
            (Some("push"), None) => self.push(index, &part::<Object<Item<'b>>>(index, operation)?.0),
            (Some("ack"), _) => self.ack(part::<Object<AckItem>>(index, operation)?.0),
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

    fn ack(&mut self, mut item: AckItem) -> Result<(), Fault> {
        self.make_room(1)?;
        // Old clients name the leases of all acks together; if there is one, it is this ack's.
        if let ([only], None) = (self.leases, &item.lease_id) {
            item.lease_id = Some(only.clone());
        }
        let rejected = |sentence| Fault::Refused(Refusal { reason: "ack_rejected", sentence });
        let read = item.read(None).map_err(rejected)?;
        self.changes = std::mem::take(&mut self.changes).acknowledge(read);
        self.parts.push(Part::Ack { transaction_id: item.transaction_id });
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
