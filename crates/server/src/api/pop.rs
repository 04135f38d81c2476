//! The three ways to pop: any partition of a queue, one partition, or any queue of a namespace or
//! task.
//!
//! A waiting request costs one demand in the library and nothing else. When its client leaves, the
//! future is dropped, and the library gives the lost claim to the next consumer.

mod delivered;

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use reveille::messages::{Batch, MessagesError, Pop, Settlement, Subscription};
use serde_json::json;
use tokio::time::timeout;

use super::answer;
use crate::budget::{Share, held};
use crate::context::Context;
use crate::fault::{DATABASE_AWAY, OVERLOADED};
use crate::heavy::heavy;
use crate::problem::Problem;
use crate::scales::ITEM_BYTES;
use crate::wire::names::{self, Names};
use crate::wire::query::Query;
use delivered::{Autopilot, Delivered};

/// Clients hang up 5 s after the time they asked for; before that they should get an answer that
/// says why there is nothing.
const GRACE: Duration = Duration::from_secs(3);
/// Bytes of a namespace's or task's name, at most.
const SPACE_MAX: usize = 512;
/// For a client that leaves the width of its pops to us.
const AUTOPILOT_BATCH: u32 = 200;
const AUTOPILOT_PARTITIONS: u32 = 10;

pub(super) async fn queue(
    State(context): State<Arc<Context>>,
    Names(queue): Names<String>,
    query: Query,
) -> Result<Response, Problem> {
    let queue = names::queue(queue)?;
    let title = queue.to_string();
    PopRequest::read(&context, &query)?.pop(&context, Pop::queue(queue), &title).await
}

pub(super) async fn partition(
    State(context): State<Arc<Context>>,
    Names((queue, partition)): Names<(String, String)>,
    query: Query,
) -> Result<Response, Problem> {
    let (queue, partition) = (names::queue(queue)?, names::partition(partition)?);
    let title = queue.to_string();
    PopRequest::read(&context, &query)?.pop(&context, Pop::partition(queue, partition), &title).await
}

pub(super) async fn space(State(context): State<Arc<Context>>, query: Query) -> Result<Response, Problem> {
    let pop = match (query.text("namespace"), query.text("task")) {
        (Some(namespace), Some(task)) => Pop::namespace_and_task(namespace, task),
        (Some(namespace), None) => Pop::namespace(namespace),
        (None, Some(task)) => Pop::task(task),
        (None, None) => {
            let refusal = json!({
                "success": false, "error": "namespace or task is required", "code": "invalid_request", "messages": [],
            });
            return Ok(answer::json(StatusCode::BAD_REQUEST, &refusal));
        }
    };
    for space in [query.text("namespace"), query.text("task")].into_iter().flatten() {
        if space.contains('\0') {
            return Err(Problem::invalid("a namespace or task contains a NUL character"));
        }
        // No queue has a longer one, and a waiting pop would keep it in memory.
        if space.len() > SPACE_MAX {
            return Err(Problem::invalid(format!("a namespace or task is longer than {SPACE_MAX} bytes")));
        }
    }
    PopRequest::read(&context, &query)?.pop(&context, pop, "").await
}

/// The parameters of a pop, except the place it pops from.
struct PopRequest {
    group: reveille::messages::GroupName,
    subscription: Subscription,
    batch: u32,
    partitions: u32,
    auto_ack: bool,
    wait: Duration,
    autopilot: Option<Autopilot>,
}

impl PopRequest {
    fn read(context: &Context, query: &Query) -> Result<Self, Problem> {
        refuse_unserved(query)?;
        let (batch, partitions) = (query.some("batch")?, query.some("partitions")?);
        let timeout = query.milliseconds("timeout")?.unwrap_or(context.defaults.timeout);
        let timeout = timeout.min(context.limits.max_poll_timeout);
        let wait = if query.is("wait")? { timeout } else { Duration::ZERO };
        let autopilot = query.is("autopilot")?.then(|| Autopilot {
            batch: batch.unwrap_or(AUTOPILOT_BATCH),
            partitions: partitions.unwrap_or(AUTOPILOT_PARTITIONS),
            wait_ms: u64::try_from(wait.as_millis()).unwrap_or(u64::MAX),
        });
        let (usual_batch, usual_partitions) = match &autopilot {
            Some(chosen) => (chosen.batch, chosen.partitions),
            None => (context.defaults.batch, 1),
        };
        Ok(Self {
            group: names::group(query.owned("consumerGroup"))?,
            subscription: subscription(query, context.defaults.subscription)?,
            batch: batch.unwrap_or(usual_batch),
            partitions: partitions.unwrap_or(usual_partitions),
            auto_ack: query.is("autoAck")?,
            wait,
            autopilot,
        })
    }

    async fn pop(self, context: &Context, pop: Pop, title: &str) -> Result<Response, Problem> {
        context.figures.pop_requests.add(1);
        let pop = pop.group(self.group.clone()).subscription(self.subscription).wait(self.wait);
        let pop = pop.batch(self.batch).partitions(self.partitions);
        let pop = if self.auto_ack { pop.auto_ack() } else { pop };
        let found = match popped(context, pop, self.wait).await {
            Ok(Some(batch)) => self.deliver(context, batch, title).await,
            Ok(None) => {
                context.figures.pops_empty.add(1);
                return Ok(answer::nothing());
            }
            Err(problem) => Err(problem),
        };
        found.inspect_err(|_| context.figures.pops_refused.add(1))
    }

    async fn deliver(&self, context: &Context, batch: Batch, title: &str) -> Result<Response, Problem> {
        let spell = || serde_json::to_vec(&Delivered::new(&batch, title, self.autopilot.as_ref()));
        // Not awaited: if the client left during an await, its messages would be lost with it.
        let spelt = heavy(weight(&batch), spell);
        let bytes = spelt.map_err(|_| Problem::invalid("the messages cannot be spelt"))?;
        let mut share = Share::default();
        // Messages that were acked by the pop itself must be answered, whatever room they take.
        if !context.answers.take(&mut share, bytes.len()) && batch.lease.is_some() {
            context.messages.settle(batch.partitions.iter().map(Settlement::release).collect()).await;
            context.figures.overloaded.add(1);
            return Err(OVERLOADED);
        }
        if batch.lease.is_some() {
            context.messages.remember(&batch);
        }
        context.figures.pops_filled.add(1);
        context.figures.popped.add(batch.len());
        Ok(answer::of_bytes(StatusCode::OK, held(bytes, share)))
    }
}

/// About how many bytes a batch takes as JSON.
fn weight(batch: &Batch) -> usize {
    let messages = batch.partitions.iter().flat_map(|lease| &lease.messages);
    messages.map(|message| message.payload.as_bytes().len() + ITEM_BYTES).sum()
}

/// Refuses parameters that would change what a pop means and are not served, before anything is
/// leased.
fn refuse_unserved(query: &Query) -> Result<(), Problem> {
    let unserved = [
        ("conflation", query.is("conflation")?),
        ("frames", query.is("frames")?),
        ("leaseSeconds", query.text("leaseSeconds").is_some()),
    ];
    match unserved.into_iter().find(|(_, given)| *given) {
        Some((name, _)) => {
            let sentence = format!("{name} is not served here; nothing was leased").into();
            Err(Problem { status: StatusCode::BAD_REQUEST, code: "not_served", sentence })
        }
        None => Ok(()),
    }
}

/// Dropped when its client leaves. When the server drains, the pop is answered with nothing.
async fn popped(context: &Context, pop: Pop, wait: Duration) -> Result<Option<Batch>, Problem> {
    let limit = if wait.is_zero() { context.limits.request_timeout } else { wait.saturating_add(GRACE) };
    let _parked = (!wait.is_zero()).then(|| context.figures.parked.begin());
    tokio::select! {
        biased;
        popped = timeout(limit, context.messages.pop(pop)) => match popped {
            Ok(Ok(batch)) => Ok(batch),
            Ok(Err(error)) => {
                if matches!(error, MessagesError::Overloaded(_)) {
                    context.figures.overloaded.add(1);
                }
                Err(error.into())
            }
            Err(_) => Err(DATABASE_AWAY),
        },
        () = context.drain.cancelled() => Ok(None),
    }
}

/// `subscriptionFrom` is the more exact of the two.
fn subscription(query: &Query, usual: Subscription) -> Result<Subscription, Problem> {
    match (query.text("subscriptionFrom"), query.text("subscriptionMode")) {
        (Some("now"), _) | (None, Some("new")) => Ok(Subscription::New),
        (Some(_), _) => Ok(query.moment("subscriptionFrom")?.map_or(usual, Subscription::From)),
        (None, Some(_)) => Ok(Subscription::All),
        (None, None) => Ok(usual),
    }
}
