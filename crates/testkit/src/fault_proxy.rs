//! A TCP proxy that fails on demand.
//!
//! Sits between a program and its server and forwards bytes until a test says otherwise:
//! [`FaultProxy::cut`], [`FaultProxy::delay`], [`FaultProxy::stall`], [`FaultProxy::half_open`],
//! [`FaultProxy::refuse`], [`FaultProxy::cut_after`], [`FaultProxy::cut_after_sending`].
//! [`FaultProxy::heal`] ends all but the cuts, which have ended by themselves.

mod pump;

use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use pump::{Line, Trip};

/// Where the proxy leads.
#[derive(Debug, Clone)]
pub enum Upstream {
    /// A Unix socket.
    Unix(PathBuf),
    /// A port of 127.0.0.1.
    Tcp(u16),
}

/// Which way bytes go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// What the program sends.
    ToServer,
    /// What the server answers.
    ToClient,
}

/// What happens to bytes now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Weather {
    Fair,
    Delayed(Duration),
    Stalled,
    Swallowed,
    Refused,
}

/// The proxy. Its connections end with it.
#[derive(Debug)]
pub struct FaultProxy {
    port: u16,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    upstream: Upstream,
    weather: watch::Sender<Weather>,
    /// Replaced at each cut: the old one ends the connections there were.
    cutter: watch::Sender<CancellationToken>,
    trip: watch::Sender<Option<Trip>>,
    open: watch::Sender<usize>,
    tasks: TaskTracker,
    end: CancellationToken,
}

impl FaultProxy {
    /// Listens on a free port of 127.0.0.1.
    ///
    /// # Panics
    /// When there is none.
    pub async fn start(upstream: Upstream) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port is free");
        let port = listener.local_addr().expect("a listener has an address").port();
        let shared = Arc::new(Shared {
            upstream,
            weather: watch::Sender::new(Weather::Fair),
            cutter: watch::Sender::new(CancellationToken::new()),
            trip: watch::Sender::new(None),
            open: watch::Sender::new(0),
            tasks: TaskTracker::new(),
            end: CancellationToken::new(),
        });
        let accepting = Arc::clone(&shared);
        let end = shared.end.clone();
        shared.tasks.spawn(async move { end.run_until_cancelled(accept(listener, accepting)).await });
        Self { port, shared }
    }

    /// The port to connect to.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Ends every connection there is. New ones are served.
    pub fn cut(&self) {
        self.shared.cut();
    }

    /// Holds every piece back for `time`, in both directions.
    pub fn delay(&self, time: Duration) {
        self.shared.weather.send_replace(Weather::Delayed(time));
    }

    /// Forwards nothing, and forgets nothing: what was held back arrives when the proxy heals.
    pub fn stall(&self) {
        self.shared.weather.send_replace(Weather::Stalled);
    }

    /// Reads everything and forwards nothing, for ever: the other side seems alive and never
    /// answers.
    pub fn half_open(&self) {
        self.shared.weather.send_replace(Weather::Swallowed);
    }

    /// Ends every connection there is, and new ones as they come.
    pub fn refuse(&self) {
        self.shared.weather.send_replace(Weather::Refused);
        self.shared.cut();
    }

    /// Forwards `bytes` more in this direction, over all connections, and then ends all of them.
    pub fn cut_after(&self, direction: Direction, bytes: usize) {
        self.shared.trip.send_replace(Some(Trip::Bytes { direction, left: bytes }));
    }

    /// Ends all connections once the program has sent `text`: the server gets it, the program never
    /// receives the answer.
    pub fn cut_after_sending(&self, text: &str) {
        self.shared.trip.send_replace(Some(Trip::Sent(text.as_bytes().to_vec())));
    }

    /// Forwards again.
    pub fn heal(&self) {
        self.shared.trip.send_replace(None);
        self.shared.weather.send_replace(Weather::Fair);
    }

    /// Waits until exactly `count` connections are open.
    pub async fn until_open(&self, count: usize) {
        let mut open = self.shared.open.subscribe();
        // The sender lives in `self`, so this cannot fail.
        let _ = open.wait_for(|now| *now == count).await;
    }
}

impl Drop for FaultProxy {
    fn drop(&mut self) {
        self.shared.end.cancel();
        self.shared.cut();
    }
}

impl Shared {
    fn cut(&self) {
        self.cutter.send_replace(CancellationToken::new()).cancel();
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    while let Ok((client, _)) = listener.accept().await {
        if *shared.weather.borrow() == Weather::Refused {
            continue;
        }
        let cut = shared.cutter.borrow().clone();
        let line = Line::new(Arc::clone(&shared));
        shared.tasks.spawn(async move { cut.run_until_cancelled(connect(client, line)).await });
    }
}

async fn connect(client: TcpStream, line: Line) {
    // Small pieces must not wait for each other here: delays are the test's to choose.
    let _ = client.set_nodelay(true);
    match line.upstream() {
        Upstream::Unix(path) => {
            if let Ok(server) = UnixStream::connect(path).await {
                line.carry(client, server).await;
            }
        }
        Upstream::Tcp(port) => {
            if let Ok(server) = TcpStream::connect((Ipv4Addr::LOCALHOST, *port)).await {
                let _ = server.set_nodelay(true);
                line.carry(client, server).await;
            }
        }
    }
}
