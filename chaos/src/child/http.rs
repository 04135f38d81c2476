//! An HTTP client that changes servers, and goes to another when one does not answer.

use std::net::SocketAddr;
use std::time::Duration;

use reveille_testkit::scenario::wire::{Reply, Wire};
use tokio::time::{sleep, timeout};

/// Longer than a server may take for a call, so that its own answer comes first.
const PATIENCE: Duration = Duration::from_secs(12);
/// A connection is left for another server after so many calls, on average.
const CALLS: u32 = 30;

/// How a call ended.
#[derive(Debug)]
pub(super) enum Response {
    /// It certainly reached no server.
    NotSent,
    /// It was sent, and no answer came back.
    NoAnswer,
    Answered(Reply),
}

#[derive(Debug)]
pub(super) struct HttpClient {
    nodes: Vec<SocketAddr>,
    random: fastrand::Rng,
    wire: Option<Wire>,
}

impl HttpClient {
    pub(super) fn new(nodes: Vec<SocketAddr>, seed: u64) -> Self {
        Self { nodes, random: fastrand::Rng::with_seed(seed ^ 0x00D0), wire: None }
    }

    pub(super) async fn post(&mut self, path: &str, body: &str) -> Response {
        self.call(PATIENCE, path, Some(body)).await
    }

    pub(super) async fn get(&mut self, path: &str) -> Response {
        self.call(PATIENCE, path, None).await
    }

    /// Hangs up after `patience`.
    pub(super) async fn get_for(&mut self, path: &str, patience: Duration) -> Response {
        self.call(patience, path, None).await
    }

    async fn call(&mut self, patience: Duration, path: &str, body: Option<&str>) -> Response {
        if self.random.u32(0..CALLS) == 0 {
            self.wire = None;
        }
        let mut wire = match self.wire.take() {
            Some(wire) => wire,
            None => {
                let node = self.nodes[self.random.usize(0..self.nodes.len())];
                match timeout(Duration::from_secs(2), Wire::connect(node)).await {
                    Ok(Ok(wire)) => wire,
                    _ => {
                        sleep(Duration::from_millis(self.random.u64(10..100))).await;
                        return Response::NotSent;
                    }
                }
            }
        };
        let answer = match body {
            Some(body) => timeout(patience, wire.post(path, body)).await,
            None => timeout(patience, wire.get(path)).await,
        };
        match answer {
            Ok(Ok(reply)) => {
                self.wire = Some(wire);
                Response::Answered(reply)
            }
            _ => Response::NoAnswer,
        }
    }
}
