//! `GET /metrics` and `/metrics/prometheus`: the same text for both, in the format of Prometheus.
//!
//! Counted in this process since it started; nothing is asked of the database, so a scrape is free.

use std::sync::Arc;

use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use prometheus::core::Collector as _;
use reveille::exposition::{self, Exposition};
use reveille::messages::BatcherFigures;
use reveille_wake::{Cause, Outcome};

use crate::service::Service;

pub(super) async fn metrics(State(service): State<Arc<Service>>) -> Response {
    ([(CONTENT_TYPE, exposition::CONTENT_TYPE)], text(&service)).into_response()
}

fn text(service: &Service) -> String {
    let mut page = Exposition::default();
    requests(&mut page, service);
    outcomes(&mut page, service);
    registry(&mut page, service);
    wake(&mut page, service);
    page.families(service.figures.wake_latency.collect());
    page.text()
}

fn requests(page: &mut Exposition, service: &Service) {
    let figures = &service.figures;
    page.one("reveille_uptime_seconds", "Since this process began.", figures.started.elapsed().as_secs());
    page.by(
        "reveille_requests_total",
        "Requests by kind.",
        "kind",
        [
            ("push", figures.push_requests.read()),
            ("pop", figures.pop_requests.read()),
            ("ack", figures.ack_requests.read()),
            ("transaction", figures.transactions.read() + figures.transactions_refused.read()),
        ],
    );
    page.by(
        "reveille_push_messages_total",
        "Messages pushed, by what became of them.",
        "outcome",
        [
            ("queued", figures.pushed.read()),
            ("duplicate", figures.duplicates.read()),
            ("buffered", figures.buffered.read()),
            ("refused", figures.push_refused.read()),
        ],
    );
    page.by(
        "reveille_pops_total",
        "Pops by what they brought.",
        "outcome",
        [
            ("messages", figures.pops_filled.read()),
            ("nothing", figures.pops_empty.read()),
            ("refused", figures.pops_refused.read()),
        ],
    );
}

fn outcomes(page: &mut Exposition, service: &Service) {
    let figures = &service.figures;
    page.one("reveille_pop_messages_total", "Messages given to consumers.", figures.popped.read());
    page.by(
        "reveille_ack_messages_total",
        "Messages acked, by what became of it.",
        "outcome",
        [("settled", figures.acked.read()), ("refused", figures.ack_refused.read())],
    );
    page.one(
        "reveille_dead_letters_total",
        "Messages that went to the dead letters: by an ack, or because they were claimed too often.",
        figures.dead.read() + service.messages.figures().buried_by_claims,
    );
    page.by(
        "reveille_transactions_total",
        "Transactions by outcome.",
        "outcome",
        [("committed", figures.transactions.read()), ("refused", figures.transactions_refused.read())],
    );
    page.one("reveille_overloaded_total", "Pops, and pages of payloads, refused with 429.", figures.overloaded.read());
    page.one("reveille_panics_total", "Requests whose handler panicked: each is a defect.", figures.panics.read());
    let taken = service.answers.taken() as u64;
    page.one("reveille_answer_bytes", "Bytes of answers that clients have not taken yet.", taken);
}

fn registry(page: &mut Exposition, service: &Service) {
    let messages = service.messages.figures();
    page.one("ack_unfenced_total", "Acks that named no lease.", messages.unfenced_acknowledgements);
    page.one("reveille_repairs_total", "Groups that had to be told of messages: each is a defect.", messages.repairs);
    page.one("reveille_waiting_pops", "Pops that wait or are being answered.", messages.waiting as u64);
    page.one("reveille_parked_requests", "Long polls that are open.", service.figures.parked.read());
    page.by(
        "reveille_waited_keys",
        "What pops wait for, by state.",
        "state",
        [
            ("waited", messages.keys as u64),
            ("in_flight", messages.keys_in_flight as u64),
            ("backed_off", messages.keys_backed_off as u64),
        ],
    );
    let batchers =
        |value: fn(&BatcherFigures) -> u64| messages.batchers.iter().map(move |batcher| (batcher.name, value(batcher)));
    page.by("reveille_lane_batches_total", "Batches by lane.", "lane", batchers(|batcher| batcher.batches));
    page.by("reveille_lane_items_total", "Items of batches by lane.", "lane", batchers(|batcher| batcher.items));
    page.by(
        "reveille_lane_busy",
        "Whether a lane's connection is at work.",
        "lane",
        batchers(|batcher| batcher.busy.into()),
    );
    let watchful = messages.poll_mode.is_fallback().into();
    page.one("reveille_pace_watchful", "1 while looks are made without being rung.", watchful);
    let states = ["off", "connecting", "proven", "stalled", "lost"];
    let states = states.map(|state| (state, u64::from(messages.link.name() == state)));
    page.by("reveille_link", "How the source of hints is: 1 for the state that holds.", "state", states);
}

fn wake(page: &mut Exposition, service: &Service) {
    let (counters, database) = (&service.figures.wake, service.messages.database().wake_figures());
    let rings = Cause::ALL.into_iter().map(|cause| (cause.name(), counters.wakes(cause)));
    page.by("reveille_rings_total", "Rings by cause.", "cause", rings);
    let looks = Outcome::ALL.into_iter().map(|outcome| (outcome.name(), counters.rounds(outcome)));
    page.by("reveille_looks_total", "Looks by outcome.", "outcome", looks);
    page.one("reveille_missed_wakes_total", "Work that no ring had announced.", counters.missed());
    page.one("reveille_leases_returned_total", "Leases that found no taker.", counters.returned());
    page.one("reveille_hints_heard_total", "Hints from other nodes.", database.heard);
    page.one("reveille_hints_sent_total", "Statements that carried hints to other nodes.", database.sent);
    page.one("reveille_heartbeats_total", "Heartbeats that were answered.", database.beats);
    page.one("reveille_listen_connects_total", "Times the LISTEN connection was made.", database.connects);
    page.one("reveille_peers", "Other nodes alive at the last heartbeat.", database.peers);
    page.seconds("reveille_echo_seconds", "How long the last echo took to come round.", database.echo);
}
