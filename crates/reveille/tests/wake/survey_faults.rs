//! Surveys that fail, and code of sources and observers that panics: other sources go on.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use reveille::database::{Database, DatabaseOptions};
use reveille::service::{Column, ColumnKey, HubSource, Survey, WorkSource};
use reveille_testkit::plain_queue::{self, Node, NodeOptions};
use reveille_testkit::{Events, TestDatabase};
use reveille_wake::{Answer, Cause, Event, Hub, HubOptions, Link};

use crate::support::{NEVER, broke, database, parked, proven};

const SOON: Duration = Duration::from_millis(100);

/// A hub of another source, and its events.
fn hub() -> (Hub<String>, Events<Event>) {
    let events = Events::new();
    let seen = events.clone();
    let observer = move |event: &Event| seen.record(*event);
    let (hub, _dues) = Hub::new(HubOptions::default().observer(Arc::new(observer)));
    (hub, events)
}

#[tokio::test]
async fn a_survey_that_fails_makes_only_its_own_source_poll_until_it_succeeds() {
    let database = database().await;
    let node = Node::start(NodeOptions::new(database.url()).heartbeat(SOON)).await;
    let (hub, events) = hub();
    let mut seen = events.reader();

    let survey =
        "select number as ordinal, 1.5 as due_s from public.later where number = any({keys}::int[]) -- no horizon";
    let _registered = node.database.register(Arc::new(HubSource::new("later", survey, hub)));
    seen.until(|event| matches!(event, Event::Link(Link::Stalled { .. }))).await;
    database.client().await.batch_execute("create table later (number int)").await.unwrap();
    seen.until(proven).await;

    assert_eq!(node.events.count(broke), 0, "the other source is not concerned");
    assert!(node.database.link().is_proven());
    assert_eq!(node.database.wake_figures().connects, 1, "nor is the connection");
}

/// Keys that are all waited for, and those that the heartbeat found.
#[derive(Debug)]
struct Many {
    hub: Hub<i64>,
    survey: Survey,
    found: Mutex<HashSet<i64>>,
}

const MANY: usize = 25_000;

impl Many {
    /// One statement for all of them would find none.
    fn new() -> Self {
        let survey = "select ordinal, -5.0 as due_s from unnest({keys}) with ordinality as waited (key, ordinal) \
             where cardinality({keys}) <= 2000";
        Self { hub: Hub::new(HubOptions::default()).0, survey: Survey::new(survey), found: Mutex::default() }
    }
}

impl WorkSource for Many {
    type Key = i64;
    type Hint = i64;

    fn name(&self) -> &'static str {
        "many"
    }

    fn hub(&self) -> &Hub<i64> {
        &self.hub
    }

    fn survey(&self) -> &Survey {
        &self.survey
    }

    fn columns(&self, keys: &[i64]) -> Vec<Column> {
        vec![i64::column(keys)]
    }

    fn wake(&self, _hint: Option<&i64>, _cause: Cause) {}

    fn wake_after(&self, _hint: &i64, _delay: Duration) {}

    fn waited(&self) -> Vec<i64> {
        (0..).take(MANY).collect()
    }

    fn wake_key(&self, key: &i64, cause: Cause) {
        if cause == Cause::Heartbeat {
            self.found.lock().unwrap().insert(*key);
        }
    }
}

#[tokio::test]
async fn a_heartbeat_surveys_some_keys_at_a_time_and_in_the_end_all() {
    let database = database().await;
    let node = Node::start(NodeOptions::new(database.url()).heartbeat(SOON)).await;
    let many = Arc::new(Many::new());
    let _registered = node.database.register(Arc::<Many>::clone(&many));

    let all = async {
        while many.found.lock().unwrap().len() < MANY {
            tokio::task::yield_now().await;
        }
    };

    tokio::time::timeout(Duration::from_secs(30), all).await.expect("every key is surveyed");
}

#[tokio::test]
async fn a_locked_table_is_waited_for_less_than_two_seconds_and_only_by_its_own_source() {
    let database = database().await;
    let node = Node::start(NodeOptions::new(database.url()).heartbeat(SOON)).await;
    let (hub, events) = hub();
    let empty = "select 0 as ordinal, 0 as due_s where false";
    let _registered = node.database.register(Arc::new(HubSource::new("other", empty, hub)));
    events.until(proven).await;
    let mut seen = node.events.reader_from_now();

    let mut locker = database.client().await;
    let lock = locker.transaction().await.unwrap();
    lock.batch_execute("lock table todo in access exclusive mode").await.unwrap();
    let began = Instant::now();
    seen.until(|event| matches!(event, Event::Link(Link::Stalled { .. }))).await;
    let found_after = began.elapsed();
    lock.rollback().await.unwrap();
    seen.until(proven).await;

    assert!(found_after < Duration::from_secs(6), "{found_after:?}: 1.5 s together and 1.5 s alone, and slack");
    assert_eq!(events.count(broke), 0, "the other source is not concerned");
    assert_eq!(node.database.wake_figures().connects, 1, "nor is the connection");
}

#[tokio::test]
async fn a_schema_that_is_migrated_later_is_found_and_until_then_work_is_found_by_polling() {
    let database = TestDatabase::empty().await;
    plain_queue::create(&database.client().await).await;
    let node = Node::start_unproven(NodeOptions::new(database.url()).heartbeat(NEVER)).await;
    node.events.until(|event| matches!(event, Event::Link(Link::Connecting { attempts: 2.. }))).await;

    let waiting = node.ask("mail");
    plain_queue::add_silently(&database.client().await, "mail", 1, 0.0).await;
    assert!(matches!(waiting.await, Answer::Lease(_)));
    node.database.migrate().await.unwrap();

    node.until_proven().await;
}

/// Panics when the test wants it.
#[derive(Debug)]
struct Clumsy {
    hub: Hub<String>,
    survey: Survey,
    in_waited: AtomicBool,
    in_wake: AtomicBool,
}

impl Clumsy {
    fn new() -> Self {
        let hub = Hub::new(HubOptions::default()).0;
        let survey = Survey::new("select 0 as ordinal, 0 as due_s where false");
        Self { hub, survey, in_waited: AtomicBool::default(), in_wake: AtomicBool::default() }
    }
}

impl WorkSource for Clumsy {
    type Key = String;
    type Hint = String;

    fn name(&self) -> &'static str {
        "clumsy"
    }

    fn hub(&self) -> &Hub<String> {
        &self.hub
    }

    fn survey(&self) -> &Survey {
        &self.survey
    }

    fn columns(&self, keys: &[String]) -> Vec<Column> {
        vec![String::column(keys)]
    }

    fn wake(&self, _hint: Option<&String>, _cause: Cause) {
        assert!(!self.in_wake.swap(false, Ordering::Relaxed), "as the test wants");
    }

    fn wake_after(&self, _hint: &String, _delay: Duration) {}

    fn waited(&self) -> Vec<String> {
        assert!(!self.in_waited.swap(false, Ordering::Relaxed), "as the test wants");
        Vec::new()
    }
}

#[tokio::test]
async fn a_panic_in_a_source_ends_neither_the_listener_nor_the_inbox() {
    let database = database().await;
    let node = Node::start(NodeOptions::new(database.url()).heartbeat(SOON)).await;
    let clumsy = Arc::new(Clumsy::new());
    let _registered = node.database.register(Arc::<Clumsy>::clone(&clumsy));
    let mut seen = node.events.reader_from_now();

    clumsy.in_waited.store(true, Ordering::Relaxed);
    seen.until(broke).await;
    seen.until(proven).await;

    let pusher = Node::start(NodeOptions::new(database.url()).heartbeat(NEVER)).await;
    clumsy.in_wake.store(true, Ordering::Relaxed);
    pusher.database.broadcaster().announce("clumsy", &"any".to_owned(), Cause::Pushed);
    while clumsy.in_wake.load(Ordering::Relaxed) {
        tokio::task::yield_now().await;
    }
    let waiting = node.ask("mail");
    parked(&node).await;
    pusher.push("mail", 1).await;
    assert!(matches!(waiting.await, Answer::Lease(_)));
}

/// An observer may call anything, so it may read the state of the link.
#[tokio::test]
async fn an_observer_that_asks_for_the_link_gets_an_answer() {
    let database = database().await;
    let way = Database::connect(DatabaseOptions::new(database.url())).await.unwrap();
    let (database_of_observer, events) = (way.clone(), Events::new());
    let links = events.clone();
    let observer = move |event: &Event| {
        if matches!(event, Event::Link(_)) {
            links.record(database_of_observer.link());
        }
    };
    let (hub, _dues) = Hub::<String>::new(HubOptions::default().observer(Arc::new(observer)));

    let _registered =
        way.register(Arc::new(HubSource::new("todo", "select 0 as ordinal, 0 as due_s where false", hub)));

    events.until(|link| link.is_proven()).await;
    way.close().await;
}
