//! `POST /api/v1/transaction`: pushes and acks in one commit, or neither.
//!
//! The answer is 200 with `success`, as clients expect. A refusal gives `reason` and `error`, and
//! nothing was done.

mod request;

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use reveille::messages::{Changes, MessagesError, Pushed, Settled, TransactionOutcome};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{ack, answer, push};
use crate::context::Context;
use crate::figures::Figures;
use crate::heavy::heavy;
use crate::problem::Problem;
use crate::request_body::Whole;
use crate::scales::{ITEM_BYTES, room_for};
use request::{Fault, Part, Refusal};

pub(super) async fn transaction(State(context): State<Arc<Context>>, Whole(body): Whole) -> Result<Response, Problem> {
    let mut bytes = ITEM_BYTES;
    let done = match heavy(body.len(), || request::read(&body)) {
        Ok((changes, parts)) => {
            bytes += parts.iter().map(Part::answer_bytes).sum::<usize>();
            let _room = room_for(&context, bytes)?;
            commit(&context, changes, &parts).await?
        }
        Err(Fault::Refused(refusal)) => Err(refusal),
        Err(Fault::Request(problem)) => return Err(problem),
    };
    let id = Uuid::now_v7();
    let result = match done {
        Ok(results) => {
            context.figures.transactions.add(1);
            json!({ "transactionId": id, "success": true, "results": results })
        }
        Err(Refusal { reason, sentence }) => {
            context.figures.transactions_refused.add(1);
            json!({ "transactionId": id, "success": false, "results": [], "reason": reason, "error": sentence })
        }
    };
    Ok(heavy(bytes, || answer::ok(&result)))
}

async fn commit(context: &Context, changes: Changes, parts: &[Part]) -> Result<Result<Vec<Value>, Refusal>, Problem> {
    let refused = |reason, sentence| Ok(Err(Refusal { reason, sentence }));
    match context.messages.transaction(changes).await {
        Ok(TransactionOutcome::Committed { pushed, settled }) => {
            count(&context.figures, &pushed, &settled);
            Ok(Ok(results(parts, pushed, settled)))
        }
        Ok(TransactionOutcome::Duplicate { push, of }) => {
            refused("duplicate", format!("push {push} was stored before, as message {of}"))
        }
        Ok(TransactionOutcome::Refused { ack, why }) => {
            let why = ack::refusal(why).unwrap_or("the message was settled before this");
            refused("ack_rejected", format!("ack {ack}: {why}"))
        }
        Ok(_) => refused("db_error", "the transaction did not commit".to_owned()),
        Err(error @ MessagesError::PayloadTooLarge { .. }) => refused("payload_too_large", error.to_string()),
        Err(error @ MessagesError::Nul { .. }) => refused("bad_request", error.to_string()),
        Err(error) => Err(error.into()),
    }
}

/// Counts each part as if it had come alone. A refused transaction did nothing and counts nothing.
fn count(figures: &Figures, pushed: &[Pushed], settled: &[Settled]) {
    for pushed in pushed {
        push::count_stored(figures, &pushed.outcome);
    }
    for settled in settled {
        ack::count_settled(figures, is_dead(*settled));
    }
}

fn is_dead(settled: Settled) -> bool {
    matches!(settled, Settled::Done { dead: true, .. })
}

fn results(parts: &[Part], pushed: Vec<Pushed>, settled: Vec<Settled>) -> Vec<Value> {
    let (mut pushed, mut settled) = (pushed.into_iter(), settled.into_iter());
    let results = parts.iter().enumerate().map(|(index, part)| match part {
        Part::Push { queue } => {
            let stored = pushed.next();
            json!({
                "index": index,
                "type": "push",
                "success": true,
                "transactionId": stored.as_ref().map(|stored| stored.transaction_id().into_owned()),
                "messageId": stored.as_ref().map(|stored| stored.id.0),
                "partitionId": stored.as_ref().and_then(|stored| stored.partition_uid).map(|uid| uid.0),
                "queueName": queue,
            })
        }
        Part::Ack { transaction_id } => {
            let dead = settled.next().is_some_and(is_dead);
            json!({
                "index": index, "type": "ack", "success": true, "transactionId": transaction_id, "error": null, "dlq": dead,
            })
        }
    });
    results.collect()
}
