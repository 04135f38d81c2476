//! A client of whichever server answers.

use std::net::SocketAddr;
use std::time::Duration;

use reveille_testkit::scenario::wire::{Reply, Wire};
use tokio::time::{sleep, timeout};

/// Longer than a server may think about a call, so that its own answer comes first.
const PATIENCE: Duration = Duration::from_secs(12);
/// A connection is left for another server after so many calls, on average.
const CALLS: u32 = 30;

/// What became of a call.
#[derive(Debug)]
pub(super) enum Asked {
    /// It certainly reached nobody.
    NotSent,
    /// It was sent, and nothing came back.
    NoAnswer,
    Answered(Reply),
}

#[derive(Debug)]
pub(super) struct Door {
    nodes: Vec<SocketAddr>,
    random: fastrand::Rng,
    wire: Option<Wire>,
}

impl Door {
    pub(super) fn new(nodes: Vec<SocketAddr>, seed: u64) -> Self {
        Self { nodes, random: fastrand::Rng::with_seed(seed ^ 0x00D0), wire: None }
    }

    pub(super) async fn post(&mut self, path: &str, body: &str) -> Asked {
        self.ask(PATIENCE, path, Some(body)).await
    }

    pub(super) async fn get(&mut self, path: &str) -> Asked {
        self.ask(PATIENCE, path, None).await
    }

    /// Hangs up after `patience`, whatever the server is doing then.
    pub(super) async fn get_for(&mut self, path: &str, patience: Duration) -> Asked {
        self.ask(patience, path, None).await
    }

    async fn ask(&mut self, patience: Duration, path: &str, body: Option<&str>) -> Asked {
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
                        return Asked::NotSent;
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
                Asked::Answered(reply)
            }
            _ => Asked::NoAnswer,
        }
    }
}
