//! The three ways to pop: any partition of a queue, one partition, or any queue of a namespace or
//! task.
//!
//! A request that waits costs a demand in the library and nothing else. When its client goes, the
//! future is dropped, and the library gives what it had claimed for it to the next one.

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
use crate::fault::{DATABASE_AWAY, OVERLOADED};
use crate::heavy::heavy;
use crate::problem::Problem;
use crate::scales::TOLD;
use crate::service::Service;
use crate::wire::names::{self, Names};
use crate::wire::query::Query;
use delivered::{Autopilot, Delivered};

/// Clients hang up 5 s after the time they asked for; before that they should hear why there is
/// nothing.
const GRACE: Duration = Duration::from_secs(3);
/// Bytes of a namespace's or task's name.
const SPACE_MAX: usize = 512;
/// For a client that leaves the width of its pops to us.
const AUTOPILOT_BATCH: u32 = 200;
const AUTOPILOT_PARTITIONS: u32 = 10;

pub(super) async fn queue(
    State(service): State<Arc<Service>>,
    Names(queue): Names<String>,
    query: Query,
) -> Result<Response, Problem> {
    let queue = names::queue(queue)?;
    let title = queue.to_string();
    Asked::read(&service, &query)?.pop(&service, Pop::queue(queue), &title).await
}

pub(super) async fn partition(
    State(service): State<Arc<Service>>,
    Names((queue, partition)): Names<(String, String)>,
    query: Query,
) -> Result<Response, Problem> {
    let (queue, partition) = (names::queue(queue)?, names::partition(partition)?);
    let title = queue.to_string();
    Asked::read(&service, &query)?.pop(&service, Pop::partition(queue, partition), &title).await
}

pub(super) async fn space(State(service): State<Arc<Service>>, query: Query) -> Result<Response, Problem> {
    let pop = match (query.text("namespace"), query.text("task")) {
        (Some(namespace), Some(task)) => Pop::namespace_and_task(namespace, task),
        (Some(namespace), None) => Pop::namespace(namespace),
        (None, Some(task)) => Pop::task(task),
        (None, None) => {
            let said = json!({
                "success": false, "error": "namespace or task is required", "code": "invalid_request", "messages": [],
            });
            return Ok(answer::json(StatusCode::BAD_REQUEST, &said));
        }
    };
    for space in [query.text("namespace"), query.text("task")].into_iter().flatten() {
        if space.contains('\0') {
            return Err(Problem::invalid("a namespace or task contains a NUL character"));
        }
        // No queue has a longer one, and whoever waits for it would keep it in memory.
        if space.len() > SPACE_MAX {
            return Err(Problem::invalid(format!("a namespace or task is longer than {SPACE_MAX} bytes")));
        }
    }
    Asked::read(&service, &query)?.pop(&service, pop, "").await
}

/// What a pop says besides where.
struct Asked {
    group: reveille::messages::GroupName,
    subscription: Subscription,
    batch: u32,
    partitions: u32,
    auto_ack: bool,
    wait: Duration,
    autopilot: Option<Autopilot>,
}

impl Asked {
    fn read(service: &Service, query: &Query) -> Result<Self, Problem> {
        served(query)?;
        let (batch, partitions) = (query.some("batch")?, query.some("partitions")?);
        let timeout = query.milliseconds("timeout")?.unwrap_or(service.defaults.timeout);
        let timeout = timeout.min(service.limits.max_poll_timeout);
        let wait = if query.is("wait")? { timeout } else { Duration::ZERO };
        let autopilot = query.is("autopilot")?.then(|| Autopilot {
            batch: batch.unwrap_or(AUTOPILOT_BATCH),
            partitions: partitions.unwrap_or(AUTOPILOT_PARTITIONS),
            wait_ms: u64::try_from(wait.as_millis()).unwrap_or(u64::MAX),
        });
        let (usual_batch, usual_partitions) = match &autopilot {
            Some(chosen) => (chosen.batch, chosen.partitions),
            None => (service.defaults.batch, 1),
        };
        Ok(Self {
            group: names::group(query.owned("consumerGroup"))?,
            subscription: subscription(query, service.defaults.subscription)?,
            batch: batch.unwrap_or(usual_batch),
            partitions: partitions.unwrap_or(usual_partitions),
            auto_ack: query.is("autoAck")?,
            wait,
            autopilot,
        })
    }

    async fn pop(self, service: &Service, pop: Pop, title: &str) -> Result<Response, Problem> {
        service.figures.pop_requests.add(1);
        let pop = pop.group(self.group.clone()).subscription(self.subscription).wait(self.wait);
        let pop = pop.batch(self.batch).partitions(self.partitions);
        let pop = if self.auto_ack { pop.auto_ack() } else { pop };
        let found = match popped(service, pop, self.wait).await {
            Ok(Some(batch)) => self.deliver(service, batch, title).await,
            Ok(None) => {
                service.figures.pops_empty.add(1);
                return Ok(answer::nothing());
            }
            Err(problem) => Err(problem),
        };
        found.inspect_err(|_| service.figures.pops_refused.add(1))
    }

    async fn deliver(&self, service: &Service, batch: Batch, title: &str) -> Result<Response, Problem> {
        let spell = || serde_json::to_vec(&Delivered::new(&batch, title, self.autopilot.as_ref()));
        // Nothing is awaited here: a client that leaves meanwhile would take its messages with it.
        let spelt = heavy(weight(&batch), spell);
        let bytes = spelt.map_err(|_| Problem::invalid("the messages cannot be spelt"))?;
        let mut share = Share::default();
        // What was acked by being popped must be told, whatever it costs.
        if !service.answers.take(&mut share, bytes.len()) && batch.lease.is_some() {
            service.messages.settle(batch.partitions.iter().map(Settlement::release).collect()).await;
            service.figures.overloaded.add(1);
            return Err(OVERLOADED);
        }
        if batch.lease.is_some() {
            service.messages.remember(&batch);
        }
        service.figures.pops_filled.add(1);
        service.figures.popped.add(batch.len());
        Ok(answer::of_bytes(StatusCode::OK, held(bytes, share)))
    }
}

/// About how many bytes it takes to spell a batch.
fn weight(batch: &Batch) -> usize {
    let messages = batch.partitions.iter().flat_map(|lease| &lease.messages);
    messages.map(|message| message.payload.as_bytes().len() + TOLD).sum()
}

/// What would make a pop something else, and is not served, is refused before anything is leased.
fn served(query: &Query) -> Result<(), Problem> {
    let asked = [
        ("conflation", query.is("conflation")?),
        ("frames", query.is("frames")?),
        ("leaseSeconds", query.text("leaseSeconds").is_some()),
    ];
    match asked.into_iter().find(|(_, asked)| *asked) {
        Some((name, _)) => {
            let sentence = format!("{name} is not served here; nothing was leased").into();
            Err(Problem { status: StatusCode::BAD_REQUEST, code: "not_served", sentence })
        }
        None => Ok(()),
    }
}

/// Dropped when its client goes, or when the server drains: then whoever waits hears that there is
/// nothing.
async fn popped(service: &Service, pop: Pop, wait: Duration) -> Result<Option<Batch>, Problem> {
    let limit = if wait.is_zero() { service.limits.request_timeout } else { wait.saturating_add(GRACE) };
    let _parked = (!wait.is_zero()).then(|| service.figures.parked.begin());
    tokio::select! {
        biased;
        popped = timeout(limit, service.messages.pop(pop)) => match popped {
            Ok(Ok(batch)) => Ok(batch),
            Ok(Err(error)) => {
                if matches!(error, MessagesError::Overloaded(_)) {
                    service.figures.overloaded.add(1);
                }
                Err(error.into())
            }
            Err(_) => Err(DATABASE_AWAY),
        },
        () = service.drain.cancelled() => Ok(None),
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
