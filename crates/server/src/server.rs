//! The accept loop and its shutdown.
//!
//! Owns the listening socket and every connection. Promises that a client beyond the limit is
//! refused at once instead of left waiting, and that shutdown stops accepting, lets running
//! requests finish within a time limit, and leaves no task behind.
//!
//! Next: [`crate::connection`].

mod handle;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use reveille::database::Database;
use reveille::messages::{Messages, MessagesOptions};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{info, warn};

pub use handle::ServerHandle;

use crate::budget::Budget;
use crate::context::{Context, PopDefaults};
use crate::figures::Figures;
use crate::health::DatabaseProbe;
use crate::http_service::HttpService;
use crate::options::Limits;
use crate::origin::Callers;
use crate::prober::Prober;
use crate::request_body::BodyReader;
use crate::{connection, problem};

/// The system is out of descriptors or memory: trying again at once would only keep a core busy.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_millis(100);

/// For statements of the queues that still run when all clients have left.
const CLOSING: Duration = Duration::from_secs(5);

/// A server whose socket is bound, and that answers no client yet.
#[derive(Debug)]
pub struct BoundServer {
    pub(crate) listener: TcpListener,
    pub(crate) address: SocketAddr,
    pub(crate) limits: Limits,
    pub(crate) defaults: PopDefaults,
    pub(crate) callers: Callers,
}

/// Answers HTTP until it is stopped.
#[derive(Debug)]
pub struct Server {
    bound: BoundServer,
    http: HttpService,
    messages: Messages,
    prober: Prober<DatabaseProbe>,
    limits: Arc<Limits>,
    seats: Arc<Semaphore>,
    /// When cancelled, clients are disconnected after their current answer.
    drain: CancellationToken,
    /// When cancelled, connections are dropped.
    cut: CancellationToken,
}

/// Everything that can happen to the loop.
enum Turn {
    Accepted(TcpStream),
    Failed(io::Error),
}

impl Server {
    pub(crate) fn new(bound: BoundServer, database: &Database, options: MessagesOptions) -> (Self, ServerHandle) {
        let limits = Arc::new(bound.limits.clone());
        let seats = Arc::new(Semaphore::new(limits.max_connections));
        let (drain, cut) = (CancellationToken::new(), CancellationToken::new());
        let figures = Arc::new(Figures::default());
        let options = options.waiters_max(limits.max_waiters).observer(Arc::clone(&figures) as Arc<_>);
        let messages = Messages::new(database, options);
        let (prober, readiness) = Prober::new(DatabaseProbe::new(database.clone()));
        let context = Arc::new(Context {
            messages: messages.clone(),
            readiness,
            limits: Arc::clone(&limits),
            defaults: bound.defaults.clone(),
            figures,
            answers: Budget::new(limits.max_in_flight),
            drain: drain.clone(),
        });
        let bodies = BodyReader { limits: Arc::clone(&limits), budget: Budget::new(limits.max_in_flight) };
        let http = HttpService::new(bound.callers.clone(), bodies, &context);
        let handle = ServerHandle::new(bound.address, Arc::clone(&seats), messages.clone());
        (Self { bound, http, messages, prober, limits, seats, drain, cut }, handle)
    }

    /// Serves until `shutdown` is cancelled and running requests have finished or run out of time.
    pub async fn run(self, shutdown: CancellationToken) {
        let Self { bound, http, messages, prober, limits, seats, drain, cut } = self;
        let BoundServer { listener, address, .. } = bound;
        let clients = Clients { http, limits, seats, drain, cut, tasks: TaskTracker::new() };
        let probing = clients.cut.clone();
        clients.tasks.spawn(async move { probing.run_until_cancelled(prober.run()).await });
        info!(%address, "serving HTTP");
        while let Some(turn) = next_turn(&listener, &shutdown).await {
            match turn {
                Turn::Accepted(stream) => clients.admit(stream),
                Turn::Failed(error) => {
                    warn!(%error, retry_in = ?PAUSE_AFTER_FAILURE, "cannot accept a connection, trying again");
                    tokio::time::sleep(PAUSE_AFTER_FAILURE).await;
                }
            }
        }
        drop(listener);
        clients.disconnect().await;
        // A database that never answers must not keep the process alive. Statements without an
        // answer were not acknowledged to any client.
        if timeout(CLOSING, messages.close()).await.is_err() {
            warn!(after = ?CLOSING, "the queues did not close in time, stopping without them");
        }
    }
}

async fn next_turn(listener: &TcpListener, shutdown: &CancellationToken) -> Option<Turn> {
    let accepted = shutdown.run_until_cancelled(listener.accept()).await?;
    Some(accepted.map_or_else(Turn::Failed, |(stream, _)| Turn::Accepted(stream)))
}

/// All connected clients.
struct Clients {
    http: HttpService,
    limits: Arc<Limits>,
    seats: Arc<Semaphore>,
    drain: CancellationToken,
    cut: CancellationToken,
    tasks: TaskTracker,
}

impl Clients {
    fn admit(&self, stream: TcpStream) {
        let Ok(seat) = Arc::clone(&self.seats).try_acquire_owned() else {
            problem::turn_away(&stream);
            return;
        };
        let (http, limits) = (self.http.clone(), Arc::clone(&self.limits));
        let (drain, cut) = (self.drain.clone(), self.cut.clone());
        self.tasks.spawn(async move {
            cut.run_until_cancelled(connection::serve(stream, http, &limits, &drain)).await;
            drop(seat);
        });
    }

    async fn disconnect(self) {
        self.drain.cancel();
        let all_seats = u32::try_from(self.limits.max_connections).unwrap_or(u32::MAX);
        let all_left = self.seats.acquire_many(all_seats);
        if timeout(self.limits.drain_timeout, all_left).await.is_err() {
            let left = self.limits.max_connections - self.seats.available_permits();
            warn!(left, after = ?self.limits.drain_timeout, "clients did not finish in time, cutting them off");
        }
        self.cut.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }
}
