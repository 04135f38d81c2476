//! `GET /metrics` and `/metrics/prometheus`: the same text for both, in the format of Prometheus.
//!
//! Counted in this process since it started; nothing is asked of the database, so a scrape is free.

use std::fmt::Write;
use std::sync::Arc;

use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use reveille_wake::{Cause, Outcome};

use crate::figures::BUCKETS;
use crate::service::Service;

const LATENCY: &str = "reveille_wake_latency_seconds";
const FORMAT: &str = "text/plain; version=0.0.4; charset=utf-8";

pub(super) async fn metrics(State(service): State<Arc<Service>>) -> Response {
    ([(CONTENT_TYPE, FORMAT)], text(&service)).into_response()
}

/// Series of one name: their labels, and their values.
struct Page(String);

impl Page {
    /// Prometheus wants counters to be called `…_total`, and so they are known by it.
    fn family(&mut self, name: &str, help: &str) {
        let kind = match name {
            name if name.ends_with("_total") => "counter",
            LATENCY => "histogram",
            _ => "gauge",
        };
        // Writing to a String cannot fail.
        let _ = write!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
    }

    fn value(&mut self, name: &str, labels: &str, value: impl std::fmt::Display) {
        let _ = match labels {
            "" => writeln!(self.0, "{name} {value}"),
            labels => writeln!(self.0, "{name}{{{labels}}} {value}"),
        };
    }

    fn one(&mut self, name: &str, help: &str, value: impl std::fmt::Display) {
        self.family(name, help);
        self.value(name, "", value);
    }

    fn many(&mut self, name: &str, help: &str, label: &str, values: &[(&str, u64)]) {
        self.family(name, help);
        for (of, value) in values {
            self.value(name, &format!("{label}=\"{of}\""), value);
        }
    }
}

fn text(service: &Service) -> String {
    let mut page = Page(String::with_capacity(8192));
    requests(&mut page, service);
    outcomes(&mut page, service);
    registry(&mut page, service);
    wake(&mut page, service);
    latency(&mut page, service);
    page.0
}

fn requests(page: &mut Page, service: &Service) {
    let figures = &service.figures;
    page.one("reveille_uptime_seconds", "Since this process began.", figures.started.elapsed().as_secs());
    page.many(
        "reveille_requests_total",
        "Requests by kind.",
        "kind",
        &[
            ("push", figures.push_requests.read()),
            ("pop", figures.pop_requests.read()),
            ("ack", figures.ack_requests.read()),
            ("transaction", figures.transactions.read() + figures.transactions_refused.read()),
        ],
    );
    page.many(
        "reveille_push_messages_total",
        "Messages pushed, by what became of them.",
        "outcome",
        &[
            ("queued", figures.pushed.read()),
            ("duplicate", figures.duplicates.read()),
            ("buffered", figures.buffered.read()),
            ("refused", figures.push_refused.read()),
        ],
    );
    page.many(
        "reveille_pops_total",
        "Pops by what they brought.",
        "outcome",
        &[
            ("messages", figures.pops_filled.read()),
            ("nothing", figures.pops_empty.read()),
            ("refused", figures.pops_refused.read()),
        ],
    );
}

fn outcomes(page: &mut Page, service: &Service) {
    let figures = &service.figures;
    page.one("reveille_pop_messages_total", "Messages given to consumers.", figures.popped.read());
    page.many(
        "reveille_ack_messages_total",
        "Messages acked, by what became of it.",
        "outcome",
        &[("settled", figures.acked.read()), ("refused", figures.ack_refused.read())],
    );
    page.one(
        "reveille_dead_letters_total",
        "Messages that went to the dead letters: by an ack, or because they were claimed too often.",
        figures.dead.read() + service.messages.figures().buried_by_claims,
    );
    page.many(
        "reveille_transactions_total",
        "Transactions by outcome.",
        "outcome",
        &[("committed", figures.transactions.read()), ("refused", figures.transactions_refused.read())],
    );
    page.one("reveille_overloaded_total", "Pops, and pages of payloads, refused with 429.", figures.overloaded.read());
    page.one("reveille_panics_total", "Requests whose handler panicked: each is a defect.", figures.panics.read());
    page.one("reveille_answer_bytes", "Bytes of answers that clients have not taken yet.", service.answers.taken());
}

fn registry(page: &mut Page, service: &Service) {
    let messages = service.messages.figures();
    page.one("ack_unfenced_total", "Acks that named no lease.", messages.unfenced_acknowledgements);
    page.one("reveille_repairs_total", "Groups that had to be told of messages: each is a defect.", messages.repairs);
    page.one("reveille_waiting_pops", "Pops that wait or are being answered.", messages.waiting);
    page.one("reveille_parked_requests", "Long polls that are open.", service.figures.parked.read());
    page.many(
        "reveille_waited_keys",
        "What pops wait for, by state.",
        "state",
        &[
            ("waited", messages.keys as u64),
            ("in_flight", messages.keys_in_flight as u64),
            ("backed_off", messages.keys_backed_off as u64),
        ],
    );
    let lanes = |value: fn(&reveille::messages::LaneFigures) -> u64| {
        messages.lanes.iter().map(|lane| (lane.name, value(lane))).collect::<Vec<_>>()
    };
    page.many("reveille_lane_batches_total", "Batches by lane.", "lane", &lanes(|lane| lane.batches));
    page.many("reveille_lane_items_total", "Items of batches by lane.", "lane", &lanes(|lane| lane.items));
    page.many("reveille_lane_busy", "Whether a lane's connection is at work.", "lane", &lanes(|lane| lane.busy.into()));
    page.one(
        "reveille_pace_watchful",
        "1 while looks are made without being rung.",
        u8::from(messages.pace.is_watchful()),
    );
    page.family("reveille_link", "How the source of hints is: 1 for the state that holds.");
    for state in ["off", "connecting", "proven", "stalled", "lost"] {
        page.value("reveille_link", &format!("state=\"{state}\""), u8::from(messages.link.name() == state));
    }
}

fn wake(page: &mut Page, service: &Service) {
    let (counters, database) = (&service.figures.wake, service.messages.database().wake_figures());
    let rings: Vec<(&str, u64)> = Cause::ALL.into_iter().map(|cause| (cause.name(), counters.rings(cause))).collect();
    page.many("reveille_rings_total", "Rings by cause.", "cause", &rings);
    let looks: Vec<(&str, u64)> =
        Outcome::ALL.into_iter().map(|outcome| (outcome.name(), counters.looks(outcome))).collect();
    page.many("reveille_looks_total", "Looks by outcome.", "outcome", &looks);
    page.one("reveille_missed_wakes_total", "Work that no ring had announced.", counters.missed());
    page.one("reveille_leases_returned_total", "Leases that found no taker.", counters.returned());
    page.one("reveille_hints_heard_total", "Hints from other nodes.", database.heard);
    page.one("reveille_hints_sent_total", "Statements that carried hints to other nodes.", database.sent);
    page.one("reveille_heartbeats_total", "Heartbeats that were answered.", database.beats);
    page.one("reveille_listen_connects_total", "Times the LISTEN connection was made.", database.connects);
    page.one("reveille_peers", "Other nodes alive at the last heartbeat.", database.peers);
    page.one("reveille_echo_seconds", "How long the last echo took to come round.", database.echo.as_secs_f64());
}

#[expect(clippy::cast_precision_loss, reason = "bounds and sums of a histogram are read as seconds")]
fn latency(page: &mut Page, service: &Service) {
    let name = LATENCY;
    let (cumulated, all, sum_us) = service.figures.wake_latency.read();
    page.family(name, "From a ring to the end of the look it caused.");
    for (bound, upto) in BUCKETS.iter().zip(cumulated) {
        page.value(&format!("{name}_bucket"), &format!("le=\"{}\"", *bound as f64 / 1e6), upto);
    }
    page.value(&format!("{name}_bucket"), "le=\"+Inf\"", all);
    page.value(&format!("{name}_sum"), "", sum_us as f64 / 1e6);
    page.value(&format!("{name}_count"), "", all);
}
