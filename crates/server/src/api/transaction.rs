//! `POST /api/v1/transaction`: pushes and acks in one commit, or neither.
//!
//! Answered with 200 and `success`, as clients expect; a refusal says why in `reason` and `error`,
//! and nothing happened.

mod asked;

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use reveille::messages::{Changes, MessagesError, Pushed, Settled, TransactionOutcome};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{ack, answer, push};
use crate::body_door::Whole;
use crate::figures::Figures;
use crate::heavy::heavy;
use crate::problem::Problem;
use crate::scales::{TOLD, room_for};
use crate::service::Service;
use asked::{Fault, Part, Refusal};

pub(super) async fn transaction(State(service): State<Arc<Service>>, Whole(body): Whole) -> Result<Response, Problem> {
    let mut telling = TOLD;
    let done = match heavy(body.len(), || asked::read(&body)) {
        Ok((changes, parts)) => {
            telling += parts.iter().map(Part::told).sum::<usize>();
            let _room = room_for(&service, telling)?;
            commit(&service, changes, &parts).await?
        }
        Err(Fault::Refused(refusal)) => Err(refusal),
        Err(Fault::Request(problem)) => return Err(problem),
    };
    let id = Uuid::now_v7();
    let told = match done {
        Ok(results) => {
            service.figures.transactions.add(1);
            json!({ "transactionId": id, "success": true, "results": results })
        }
        Err(Refusal { reason, sentence }) => {
            service.figures.transactions_refused.add(1);
            json!({ "transactionId": id, "success": false, "results": [], "reason": reason, "error": sentence })
        }
    };
    Ok(heavy(telling, || answer::ok(&told)))
}

async fn commit(service: &Service, changes: Changes, parts: &[Part]) -> Result<Result<Vec<Value>, Refusal>, Problem> {
    let refused = |reason, sentence| Ok(Err(Refusal { reason, sentence }));
    match service.messages.transaction(changes).await {
        Ok(TransactionOutcome::Committed { pushed, settled }) => {
            count(&service.figures, &pushed, &settled);
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

/// As if each had come alone. What a refused transaction would have done was not done, and counts
/// as nothing.
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
    let told = parts.iter().enumerate().map(|(index, part)| match part {
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
    told.collect()
}
