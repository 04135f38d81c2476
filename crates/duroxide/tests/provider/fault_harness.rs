//! Two programs on one database, and how late a waiting fetch is.

use std::time::{Duration, SystemTime};

use duroxide::providers::{ExecutionMetadata, Provider, ProviderError, SessionFetchConfig, TagFilter, WorkItem};
use duroxide::{Event, EventKind};
use reveille_duroxide::{LongPollConfig, PostgresProvider, PostgresProviderOptions};
use reveille_testkit::TestDatabase;
use tokio_postgres::Client;

/// How late a fetch may be on a machine that tests share.
pub(crate) const LATE: Duration = Duration::from_millis(500);
/// How long fetches wait: too long for its end to explain anything in these tests.
pub(crate) const WAIT: Duration = Duration::from_secs(60);
/// A lock that outlasts every test.
pub(crate) const LONG: Duration = Duration::from_secs(600);

/// A provider with a database, as one program has it.
pub(crate) async fn open(database: &TestDatabase) -> PostgresProvider {
    proven(PostgresProvider::options().url(database.url())).await
}

/// The same with a choice of how fetches wait.
pub(crate) async fn open_with(database: &TestDatabase, config: LongPollConfig) -> PostgresProvider {
    proven(PostgresProvider::options().url(database.url()).long_poll(config)).await
}

/// Opens a provider and waits for the first echo of its listener: from there on, a fetch claims
/// only after a wake-up.
pub(crate) async fn proven(options: PostgresProviderOptions) -> PostgresProvider {
    let provider = options.open().await.expect("a provider opens");
    // Starts the listener.
    assert!(take_turn(&provider, LONG, Duration::ZERO).await.is_none());
    assert!(take_activity(&provider, LONG, Duration::ZERO, None).await.is_none());
    let proven = async {
        while !provider.database().link().is_proven() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), proven).await.expect("the link is proven");
    provider
}

pub(crate) fn start(instance: &str) -> WorkItem {
    WorkItem::StartOrchestration {
        instance: instance.to_owned(),
        orchestration: "Order".to_owned(),
        input: String::new(),
        version: Some("1.0.0".to_owned()),
        parent_instance: None,
        parent_id: None,
        parent_execution_id: None,
        execution_id: 1,
    }
}

pub(crate) fn activity(session: Option<&str>) -> WorkItem {
    WorkItem::ActivityExecute {
        instance: "order".to_owned(),
        execution_id: 1,
        id: 2,
        name: "Charge".to_owned(),
        input: String::new(),
        session_id: session.map(str::to_owned),
        tag: None,
    }
}

/// The token of a turn.
pub(crate) async fn take_turn(provider: &PostgresProvider, lock: Duration, wait: Duration) -> Option<String> {
    let taken = provider.fetch_orchestration_item(lock, wait, None).await.expect("a fetch succeeds");
    taken.map(|(_, token, _)| token)
}

/// The token of an activity; `owner` takes sessions for the given time.
pub(crate) async fn take_activity(
    provider: &PostgresProvider,
    lock: Duration,
    wait: Duration,
    owner: Option<(&str, Duration)>,
) -> Option<String> {
    let session = owner.map(|(owner, lock_timeout)| SessionFetchConfig { owner_id: owner.to_owned(), lock_timeout });
    let taken = provider.fetch_work_item(lock, wait, session.as_ref(), &TagFilter::DefaultOnly).await;
    taken.expect("a fetch succeeds").map(|(_, token, _)| token)
}

/// An event of the history of [`start`]'s first execution.
pub(crate) fn event(instance: &str, id: u64, kind: EventKind) -> Event {
    Event::with_event_id(id, instance, 1, None, kind)
}

/// The first event of every history.
pub(crate) fn started(instance: &str) -> Event {
    let kind = EventKind::OrchestrationStarted {
        name: "Order".to_owned(),
        version: "1.0.0".to_owned(),
        input: String::new(),
        parent_instance: None,
        parent_id: None,
        parent_execution_id: None,
        carry_forward_events: None,
        initial_custom_status: None,
    };
    event(instance, 1, kind)
}

/// What the runtime records about an instance after its first turn.
pub(crate) fn about_order() -> ExecutionMetadata {
    ExecutionMetadata {
        orchestration_name: Some("Order".to_owned()),
        orchestration_version: Some("1.0.0".to_owned()),
        ..ExecutionMetadata::default()
    }
}

/// Ends the first turn of an instance; `sent` are the messages it sends.
pub(crate) async fn end_turn(
    provider: &PostgresProvider,
    instance: &str,
    token: &str,
    sent: Vec<WorkItem>,
) -> Result<(), ProviderError> {
    let history = vec![started(instance)];
    provider.ack_orchestration_item(token, 1, history, Vec::new(), sent, about_order(), Vec::new()).await
}

/// When work becomes visible. Nothing may come before that.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Due {
    /// As soon as the act that makes it visible is done.
    Now,
    /// So long after that.
    In(Duration),
    /// At this time of the database's clock.
    At(SystemTime),
}

/// The database's clock, which alone decides what is due.
pub(crate) async fn clock(client: &Client) -> SystemTime {
    client.query_one("select clock_timestamp()", &[]).await.expect("the database knows the time").get(0)
}

/// Lets a fetch wait, does something that makes work visible when it is due, and checks that the
/// fetch is neither early nor late.
pub(crate) async fn woken<T>(
    database: &TestDatabase,
    due: Due,
    waiting: impl Future<Output = Option<T>>,
    act: impl Future<Output = ()>,
) {
    let client = database.client().await;
    let acting = async {
        // Until the fetch has claimed once and sleeps; a fetch that had not would find the work
        // even sooner.
        tokio::time::sleep(Duration::from_millis(150)).await;
        let began = clock(&client).await;
        act.await;
        (began, clock(&client).await)
    };
    let fetching = async { (waiting.await, clock(&client).await) };
    let ((found, at), (began, acted)) = tokio::join!(fetching, acting);
    assert!(found.is_some(), "the fetch waited in vain");
    let (earliest, latest) = match due {
        Due::Now => (began, acted),
        Due::In(delay) => (began + delay, acted + delay),
        Due::At(time) => (time, time),
    };
    // The clock was read before and after the act, so no tolerance is needed.
    let early = earliest.duration_since(at).unwrap_or_default();
    assert!(early.is_zero(), "{early:?} before it was due");
    let late = at.duration_since(latest).unwrap_or_default();
    assert!(late < LATE, "{late:?} late");
}
