//! What a transaction asks for, read within bounds before anything of it is done.

use bytes::Bytes;
use reveille::messages::Changes;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::api::ack::Said;
use crate::api::push::Item;
use crate::problem::Problem;
use crate::wire::json::{Bounded, Objects, parse, present};

/// Pushes and acks of all operations together: they are one commit, and are kept in memory until it is done.
const PARTS_MAX: usize = 10_000;

#[derive(Debug, Deserialize)]
struct Body<'b> {
    #[serde(borrow)]
    operations: Option<Objects<Operation<'b>, PARTS_MAX>>,
    #[serde(rename = "requiredLeases")]
    required_leases: Option<Bounded<String, PARTS_MAX>>,
    /// Newer clients let these ride along in the same commit.
    #[serde(borrow)]
    kv: Option<&'b RawValue>,
    #[serde(borrow)]
    timers: Option<&'b RawValue>,
}

/// A push has items, or is itself one; an ack is one.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Operation<'b> {
    r#type: Option<String>,
    /// Read once it is known how many there may be.
    #[serde(borrow)]
    items: Option<&'b RawValue>,
    queue: Option<String>,
    partition: Option<String>,
    #[serde(borrow, default, deserialize_with = "present")]
    payload: Option<&'b RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    data: Option<&'b RawValue>,
    trace_id: Option<String>,
    transaction_id: Option<String>,
    partition_id: Option<String>,
    status: Option<String>,
    consumer_group: Option<String>,
    error: Option<Value>,
    lease_id: Option<String>,
}

/// What an operation was, for its place in the answer.
pub(super) enum Part {
    Push { queue: String },
    Ack { transaction_id: Option<String> },
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
    let Some(Objects(operations)) = said.operations else { return invalid("operations array required") };
    if operations.is_empty() {
        return invalid("operations array cannot be empty");
    }
    for (name, rider) in [("kv", said.kv), ("timers", said.timers)] {
        // Done without it, the transaction would be a part of what was asked for and would look like the whole.
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
    fn add(&mut self, index: usize, mut operation: Operation<'b>) -> Result<(), Fault> {
        match operation.r#type.as_deref() {
            Some("push") => match operation.items.take() {
                Some(items) => self.push_all(index, items),
                None => self.push(index, &operation.into_item()),
            },
            Some("ack") => self.ack(operation.into_said(self.leases)),
            _ => Err(Fault::bad(format!("operations[{index}].type must be push or ack"))),
        }
    }

    fn push_all(&mut self, index: usize, items: &'b RawValue) -> Result<(), Fault> {
        let invalid = |error: serde_json::Error| Fault::Request(Problem::invalid(error.to_string()));
        let Objects(items) = serde_json::from_str::<Objects<Item<'b>, PARTS_MAX>>(items.get()).map_err(invalid)?;
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

    fn ack(&mut self, said: Said) -> Result<(), Fault> {
        self.make_room(1)?;
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

impl<'b> Operation<'b> {
    fn into_item(self) -> Item<'b> {
        Item {
            queue: self.queue,
            partition: self.partition,
            payload: self.payload,
            data: self.data,
            transaction_id: self.transaction_id,
            trace_id: self.trace_id,
        }
    }

    /// Old clients name the lease for all acks together; if it is one, it is this one's.
    fn into_said(self, leases: &[String]) -> Said {
        let only = match leases {
            [only] => Some(only.clone()),
            _ => None,
        };
        Said {
            transaction_id: self.transaction_id,
            partition_id: self.partition_id,
            status: self.status,
            consumer_group: self.consumer_group,
            error: self.error,
            lease_id: self.lease_id.or(only),
        }
    }
}
