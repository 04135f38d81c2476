//! The accept loop, and the end of it.
//!
//! Owns the listening socket and every connection. Promises that one client more than the limit is
//! told to come back instead of being left waiting, and that shutdown stops accepting, lets what
//! runs finish within a bound, and leaves no task behind.
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

use crate::body_door::Doorway;
use crate::budget::Budget;
use crate::figures::Figures;
use crate::front::Front;
use crate::options::Limits;
use crate::origin::Callers;
use crate::prober::Prober;
use crate::service::{PopDefaults, Service};
use crate::{connection, health, problem};

/// The system is out of descriptors or memory: trying again at once would only burn a core.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_millis(100);

/// For what the queues have in flight when everybody has left.
const CLOSING: Duration = Duration::from_secs(5);

/// A socket that listens and answers nobody yet.
#[derive(Debug)]
pub struct Door {
    pub(crate) listener: TcpListener,
    pub(crate) address: SocketAddr,
    pub(crate) limits: Limits,
    pub(crate) defaults: PopDefaults,
    pub(crate) callers: Callers,
}

/// Answers HTTP until it is told to stop.
#[derive(Debug)]
pub struct Server {
    door: Door,
    front: Front,
    messages: Messages,
    prober: Prober<health::Look>,
    limits: Arc<Limits>,
    seats: Arc<Semaphore>,
    /// From here on clients are let go.
    drain: CancellationToken,
    /// From here on they are dropped.
    cut: CancellationToken,
}

/// Everything that can happen to the loop.
enum Turn {
    Came(TcpStream),
    Broke(io::Error),
}

impl Server {
    pub(crate) fn new(door: Door, database: &Database, options: MessagesOptions) -> (Self, ServerHandle) {
        let limits = Arc::new(door.limits.clone());
        let seats = Arc::new(Semaphore::new(limits.max_connections));
        let (drain, cut) = (CancellationToken::new(), CancellationToken::new());
        let figures = Arc::new(Figures::default());
        let options = options.waiters_max(limits.max_waiters).observer(Arc::clone(&figures) as Arc<_>);
        let messages = Messages::new(database, options);
        let (prober, readiness) = Prober::new(health::look(database.clone()));
        let service = Arc::new(Service {
            messages: messages.clone(),
            readiness,
            limits: Arc::clone(&limits),
            defaults: door.defaults.clone(),
            figures,
            answers: Budget::new(limits.max_in_flight),
            drain: drain.clone(),
        });
        let doorway = Doorway { limits: Arc::clone(&limits), bodies: Budget::new(limits.max_in_flight) };
        let front = Front::new(door.callers.clone(), doorway, &service);
        let handle = ServerHandle::new(door.address, Arc::clone(&seats), messages.clone());
        (Self { door, front, messages, prober, limits, seats, drain, cut }, handle)
    }

    /// Serve until `shutdown` is cancelled and what was in flight has finished, or its time is up.
    pub async fn run(self, shutdown: CancellationToken) {
        let Self { door, front, messages, prober, limits, seats, drain, cut } = self;
        let Door { listener, address, .. } = door;
        let clients = Clients { front, limits, seats, drain, cut, tasks: TaskTracker::new() };
        let probing = clients.cut.clone();
        clients.tasks.spawn(async move { probing.run_until_cancelled(prober.run()).await });
        info!(%address, "serving HTTP");
        while let Some(turn) = next_turn(&listener, &shutdown).await {
            match turn {
                Turn::Came(stream) => clients.admit(stream),
                Turn::Broke(error) => {
                    warn!(%error, retry_in = ?PAUSE_AFTER_FAILURE, "cannot accept a connection, trying again");
                    tokio::time::sleep(PAUSE_AFTER_FAILURE).await;
                }
            }
        }
        drop(listener);
        clients.let_go().await;
        // A database that swallows everything must not keep the process: what it has not answered
        // was not acknowledged.
        if timeout(CLOSING, messages.close()).await.is_err() {
            warn!(after = ?CLOSING, "the queues did not close in time, leaving them");
        }
    }
}

async fn next_turn(listener: &TcpListener, shutdown: &CancellationToken) -> Option<Turn> {
    let accepted = shutdown.run_until_cancelled(listener.accept()).await?;
    Some(accepted.map_or_else(Turn::Broke, |(stream, _)| Turn::Came(stream)))
}

/// Everyone who is connected.
struct Clients {
    front: Front,
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
        let (front, limits) = (self.front.clone(), Arc::clone(&self.limits));
        let (drain, cut) = (self.drain.clone(), self.cut.clone());
        self.tasks.spawn(async move {
            cut.run_until_cancelled(connection::serve(stream, front, &limits, &drain)).await;
            drop(seat);
        });
    }

    async fn let_go(self) {
        self.drain.cancel();
        let everyone = u32::try_from(self.limits.max_connections).unwrap_or(u32::MAX);
        let all_left = self.seats.acquire_many(everyone);
        if timeout(self.limits.drain_timeout, all_left).await.is_err() {
            let left = self.limits.max_connections - self.seats.available_permits();
            warn!(left, after = ?self.limits.drain_timeout, "clients did not finish in time, cutting them off");
        }
        self.cut.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }
}
