//! The log lines of jobs, as a subscriber of `tracing` gets them: their names and fields are what
//! dashboards search for.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Debug;
use std::sync::{LazyLock, Mutex, PoisonError};
use std::thread::{self, ThreadId};

use reveille::jobs::{JobId, NewJob};
use reveille_testkit::Events;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

use crate::support::Fixture;

/// One event: how bad it is, and its fields.
#[derive(Debug, Clone)]
struct Line {
    level: Level,
    fields: BTreeMap<&'static str, String>,
}

impl Line {
    fn is(&self, event: &str, job: JobId) -> bool {
        self.has("event", event) && self.has("job_id", &job.to_string())
    }

    fn has(&self, field: &str, value: &str) -> bool {
        self.fields.get(field).is_some_and(|found| found == value)
    }

    fn names(&self) -> Vec<&str> {
        self.fields.keys().copied().collect()
    }
}

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.fields.insert(field.name(), format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.fields.insert(field.name(), value.to_owned());
    }
}

/// Collects the events of jobs, for the thread that they happen in: each of these tests has its
/// own, and runs everything there. One for the whole process, because `tracing` remembers for the
/// process, at the first line of its kind, whether a line is wanted at all.
#[derive(Debug)]
struct Collector;

static COLLECTED: LazyLock<Mutex<HashMap<ThreadId, Events<Line>>>> = LazyLock::new(|| {
    tracing::subscriber::set_global_default(Collector).expect("this is the only subscriber");
    // Lines that came before were remembered as unwanted.
    tracing::callsite::rebuild_interest_cache();
    Mutex::default()
});

impl Subscriber for Collector {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event() && metadata.target().starts_with("reveille::jobs")
    }

    fn event(&self, event: &Event<'_>) {
        let mut line = Line { level: *event.metadata().level(), fields: BTreeMap::new() };
        event.record(&mut line);
        let lines = COLLECTED.lock().unwrap_or_else(PoisonError::into_inner).get(&thread::current().id()).cloned();
        if let Some(lines) = lines {
            lines.record(line);
        }
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// What is logged in this thread from now on.
fn collected() -> Events<Line> {
    let lines = Events::new();
    COLLECTED.lock().unwrap_or_else(PoisonError::into_inner).insert(thread::current().id(), lines.clone());
    lines
}

#[tokio::test]
async fn a_job_is_logged_with_the_names_and_fields_that_dashboards_search_for() {
    let lines = collected();
    let fixture = Fixture::new().await;
    let _worker = fixture.worker().name("w-1").start().await.unwrap();
    let of = |kind: &str| NewJob::new(kind, &1).unwrap().metadata(&serde_json::json!({"item_id": "i-7"})).unwrap();

    let (done, failed) = (fixture.enqueue(of("ok")).await, fixture.enqueue(of("no").max_attempts(2)).await);
    let claimed = lines.until(|line| line.is("job_claimed", done)).await;
    let completed = lines.until(|line| line.is("job_completed", done)).await;
    let again = lines.until(|line| line.is("job_failed", failed) && line.has("will_retry", "true")).await;
    let dead = lines.until(|line| line.is("job_failed", failed) && line.has("will_retry", "false")).await;

    assert_eq!(claimed.names(), ["attempt", "event", "item_id", "job_id", "kind", "message", "queue", "worker_id"]);
    assert!(claimed.has("attempt", "1") && claimed.fields["worker_id"].starts_with("w-1-"), "{claimed:?}");
    assert_eq!(completed.names(), ["duration_ms", "event", "item_id", "job_id", "kind", "message", "queue"]);
    assert!(completed.fields["duration_ms"].parse::<f64>().is_ok_and(|took| took >= 0.0), "{completed:?}");
    for line in [&again, &dead] {
        let fields =
            ["error_code", "error_message", "event", "item_id", "job_id", "kind", "message", "queue", "will_retry"];
        assert_eq!(line.names(), fields);
        assert!(line.has("kind", "no") && line.has("queue", "default"), "{line:?}");
        assert!(line.has("error_code", "failed") && line.has("error_message", "it cannot"), "{line:?}");
    }
    for line in [&claimed, &completed, &again, &dead] {
        assert!(line.has("item_id", "i-7") && line.fields["event"] == line.fields["message"], "{line:?}");
    }
    assert_eq!([claimed.level, completed.level, again.level], [Level::INFO, Level::INFO, Level::WARN]);
}

/// A subscriber that writes JSON leaves the field out, then.
#[tokio::test]
async fn a_job_of_no_item_is_logged_without_one() {
    let lines = collected();
    let fixture = Fixture::new().await;
    let _worker = fixture.worker().start().await.unwrap();
    let nothing = serde_json::json!({"item_id": null});

    let null = fixture.enqueue(NewJob::new("ok", &1).unwrap().metadata(&nothing).unwrap()).await;
    let none = fixture.enqueue(NewJob::new("no", &1).unwrap().max_attempts(1)).await;
    lines.until(|line| line.is("job_completed", null)).await;
    lines.until(|line| line.is("job_failed", none)).await;

    let lines = lines.all();
    let about: Vec<&Line> = lines.iter().filter(|line| line.fields.contains_key("event")).collect();
    assert_eq!(about.len(), 4, "{about:?}");
    assert!(about.iter().all(|line| !line.fields.contains_key("item_id")), "{about:?}");
}

/// Its worker was gone and did not fail it: the process that claims it logs its end.
#[tokio::test]
async fn a_job_whose_last_worker_was_lost_is_logged_as_failed() {
    let lines = collected();
    let fixture = Fixture::new().await;
    let id = fixture.enqueue(NewJob::new("ok", &1).unwrap().max_attempts(1)).await;
    let lost = "update reveille.job set nonce = 7, worker = 'w', epoch = 1, attempt = 1, due_at = now()";
    fixture.sql(lost).await;

    let _worker = fixture.worker().start().await.unwrap();
    let failed = lines.until(|line| line.is("job_failed", id)).await;

    assert!(failed.has("error_code", "lease_expired") && failed.has("will_retry", "false"), "{failed:?}");
    let fields = ["error_code", "error_message", "event", "job_id", "kind", "message", "queue", "will_retry"];
    assert_eq!(failed.names(), fields);
}
