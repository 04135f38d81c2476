//! One process of many, in one test.

use std::sync::Arc;
use std::time::{Duration, Instant};

use own_table::{SOURCE, SURVEY, Taken, Todo};
use reveille::database::{Database, DatabaseOptions};
use reveille::service::{HubSource, Registration};
use reveille_wake::{
    Answer, Counters, Dispatcher, DispatcherHandle, DispatcherOptions, Event, Hub, HubOptions, Observer, Patience,
    Ticket,
};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::Events;

/// How a node is made.
#[derive(Debug, Clone)]
pub struct NodeOptions {
    /// Where the database is.
    pub database: DatabaseOptions,
    /// How long a claim lasts.
    pub lease: Duration,
}

impl NodeOptions {
    /// A node on `url`, with a lease that outlives every test.
    pub fn new(url: impl Into<String>) -> Self {
        Self { database: DatabaseOptions::new(url), lease: Duration::from_secs(3600) }
    }

    /// Another heartbeat than the usual one.
    #[must_use]
    pub fn heartbeat(mut self, interval: Duration) -> Self {
        self.database = self.database.heartbeat(interval);
        self
    }

    /// Another lease.
    #[must_use]
    pub fn lease(mut self, lease: Duration) -> Self {
        self.lease = lease;
        self
    }
}

/// A database, a hub and a dispatcher, as one process has them.
#[derive(Debug)]
pub struct Node {
    /// The node's own way to the database.
    pub database: Database,
    /// Its hub.
    pub hub: Hub<String>,
    /// Its dispatcher.
    pub handle: DispatcherHandle<Todo>,
    /// What the engine did.
    pub events: Events<Event>,
    /// The same, counted.
    pub counters: Arc<Counters>,
    _registration: Registration,
    tasks: TaskTracker,
    end: CancellationToken,
}

impl Node {
    /// Starts a node and waits until its link is proven.
    ///
    /// # Panics
    /// When the database cannot be reached.
    pub async fn start(options: NodeOptions) -> Self {
        let node = Self::start_unproven(options).await;
        node.until_proven().await;
        node
    }

    /// Starts a node, whatever its link is.
    ///
    /// # Panics
    /// When the database cannot be reached.
    pub async fn start_unproven(options: NodeOptions) -> Self {
        let database = Database::connect(options.database.clone()).await.expect("the database can be reached");
        Self::on(database, &options)
    }

    /// One more dispatcher with its own hub on a database that others may share.
    pub fn on(database: Database, options: &NodeOptions) -> Self {
        let (events, counters) = (Events::new(), Arc::new(Counters::default()));
        let (seen, counted) = (events.clone(), Arc::clone(&counters));
        let observer = move |event: &Event| {
            counted.observe(event);
            seen.record(*event);
        };
        let hub_options = HubOptions::default().observer(Arc::new(observer));
        let (hub, runner) = Hub::new(hub_options);
        let source = Todo::new(database.clone(), options.lease);
        let (dispatcher, handle) = Dispatcher::new(&hub, source, DispatcherOptions::default());
        let registration = database.register(Arc::new(HubSource::new(SOURCE, SURVEY, hub.clone())));
        let (tasks, end) = (TaskTracker::new(), CancellationToken::new());
        tasks.spawn(runner.run(end.clone().cancelled_owned()));
        tasks.spawn(dispatcher.run(end.clone().cancelled_owned()));
        Self { database, hub, handle, events, counters, _registration: registration, tasks, end }
    }

    /// Waits until the link is proven.
    pub async fn until_proven(&self) {
        self.events.until(|event| matches!(event, Event::Link(link) if link.is_proven())).await;
    }

    /// Makes a demand for a row.
    ///
    /// # Panics
    /// When the dispatcher refuses.
    pub fn ask(&self, queue: &str) -> Ticket<Todo> {
        let until = Patience::Until(Instant::now() + Duration::from_secs(120));
        self.handle.request([queue.to_owned()], (), until).expect("the dispatcher takes a demand")
    }

    /// Waits for a row.
    ///
    /// # Panics
    /// When there is none within two minutes.
    pub async fn take(&self, queue: &str) -> Taken {
        match self.ask(queue).await {
            Answer::Lease(taken) => taken,
            other => panic!("no row of {queue}, but {other:?}"),
        }
    }

    /// Commits rows, and announces them to this node and the others, as an application does.
    ///
    /// # Panics
    /// When they cannot be committed.
    pub async fn push(&self, queue: &str, count: i64) {
        own_table::push(&self.database, queue, count).await.expect("rows can be added");
    }

    /// Ends the node in order.
    pub async fn close(self) {
        self.end.cancel();
        self.tasks.close();
        self.tasks.wait().await;
        self.database.close().await;
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.end.cancel();
    }
}
