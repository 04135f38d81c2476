//! `GET /metrics` and `/metrics/prometheus`: the same text for both, in the format of Prometheus.
//!
//! Counted in this process since it started. A scrape sends nothing to the database.

use std::sync::Arc;

use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use prometheus::core::Collector as _;
use reveille::exposition::{self, Exposition};
use reveille::messages::BatcherFigures;
use reveille_wake::{Cause, Outcome};

use crate::context::Context;

pub(super) async fn metrics(State(context): State<Arc<Context>>) -> Response {
    ([(CONTENT_TYPE, exposition::CONTENT_TYPE)], text(&context)).into_response()
}

fn text(context: &Context) -> String {
    let mut page = Exposition::default();
    requests(&mut page, context);
    outcomes(&mut page, context);
    registry(&mut page, context);
    wake(&mut page, context);
    page.families(context.figures.wake_latency.collect());
    page.text()
}

fn requests(page: &mut Exposition, context: &Context) {
    let figures = &context.figures;
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
        "Messages pushed, by outcome.",
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
        "Pops by outcome.",
        "outcome",
        [
            ("messages", figures.pops_filled.read()),
            ("nothing", figures.pops_empty.read()),
            ("refused", figures.pops_refused.read()),
        ],
    );
}

fn outcomes(page: &mut Exposition, context: &Context) {
    let figures = &context.figures;
    page.one("reveille_pop_messages_total", "Messages given to consumers.", figures.popped.read());
    page.by(
        "reveille_ack_messages_total",
        "Messages acked, by outcome.",
        "outcome",
        [("settled", figures.acked.read()), ("refused", figures.ack_refused.read())],
    );
    page.one(
        "reveille_dead_letters_total",
        "Messages moved to the dead letters, by an ack or because they were claimed too often.",
        figures.dead.read() + context.messages.figures().buried_by_claims,
    );
    page.by(
        "reveille_transactions_total",
        "Transactions by outcome.",
        "outcome",
        [("committed", figures.transactions.read()), ("refused", figures.transactions_refused.read())],
    );
    page.one("reveille_overloaded_total", "Pops, and pages of payloads, refused with 429.", figures.overloaded.read());
    page.one(
        "reveille_panics_total",
        "Requests whose handler panicked. Each is a bug in Reveille.",
        figures.panics.read(),
    );
    let taken = context.answers.taken() as u64;
    page.one("reveille_answer_bytes", "Bytes of answers that clients have not taken yet.", taken);
}

fn registry(page: &mut Exposition, context: &Context) {
    let messages = context.messages.figures();
    page.one("ack_unfenced_total", "Acks that named no lease.", messages.unfenced_acknowledgements);
    page.one(
        "reveille_repairs_total",
        "Groups that upkeep had to mark ready because nothing had announced their messages. Each is a bug in Reveille.",
        messages.repairs,
    );
    page.one("reveille_waiting_pops", "Pops that wait or are being answered now.", messages.waiting as u64);
    page.one("reveille_parked_requests", "Long polls that are open.", context.figures.parked.read());
    page.by(
        "reveille_waited_keys",
        "Keys (groups of a queue or of a partition) that pops wait for, by state.",
        "state",
        [
            ("waited", messages.keys as u64),
            ("in_flight", messages.keys_in_flight as u64),
            ("backed_off", messages.keys_backed_off as u64),
        ],
    );
    let batchers =
        |value: fn(&BatcherFigures) -> u64| messages.batchers.iter().map(move |batcher| (batcher.name, value(batcher)));
    page.by("reveille_lane_batches_total", "Flushes by batcher.", "lane", batchers(|batcher| batcher.batches));
    page.by("reveille_lane_items_total", "Items in flushes by batcher.", "lane", batchers(|batcher| batcher.items));
    page.by(
        "reveille_lane_busy",
        "1 while a batcher runs a statement.",
        "lane",
        batchers(|batcher| batcher.busy.into()),
    );
    let fallback = messages.poll_mode.is_fallback().into();
    page.one("reveille_pace_watchful", "1 during fallback polling, because hints cannot be trusted.", fallback);
    let states = ["off", "connecting", "proven", "stalled", "lost"];
    let states = states.map(|state| (state, u64::from(messages.link.name() == state)));
    page.by("reveille_link", "State of the LISTEN connection: 1 for the current one.", "state", states);
}

fn wake(page: &mut Exposition, context: &Context) {
    let (counters, database) = (&context.figures.wake, context.messages.database().wake_figures());
    let wakes = Cause::ALL.into_iter().map(|cause| (cause.name(), counters.wakes(cause)));
    page.by("reveille_rings_total", "Wake-ups by cause.", "cause", wakes);
    let rounds = Outcome::ALL.into_iter().map(|outcome| (outcome.name(), counters.rounds(outcome)));
    page.by("reveille_looks_total", "Claim rounds by outcome.", "outcome", rounds);
    page.one(
        "reveille_missed_wakes_total",
        "Work that no wake-up had announced: only a heartbeat or polling found it.",
        counters.missed(),
    );
    page.one("reveille_leases_returned_total", "Leases given back because no consumer took them.", counters.returned());
    page.one("reveille_hints_heard_total", "Hints received from other nodes.", database.received);
    page.one("reveille_hints_sent_total", "Statements that carried hints to other nodes.", database.sent);
    page.one("reveille_heartbeats_total", "Heartbeats that were answered.", database.beats);
    page.one("reveille_listen_connects_total", "Times the LISTEN connection was made.", database.connects);
    page.one("reveille_peers", "Other nodes alive at the last heartbeat.", database.peers);
    page.seconds("reveille_echo_seconds", "Time from sending the last echo to receiving it.", database.echo);
}
