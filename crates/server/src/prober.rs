//! One probe at a time, for all health checks.
//!
//! Owns the last answer of a [`Probe`]. Promises that an answer is at most [`AGE_MAX`] old, and
//! that one task probes at most once in that time, however many health checks there are and however
//! many of them are abandoned. Without health checks there are no probes: an idle server is silent.

use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, timeout};

/// How old an answer may be.
const AGE_MAX: Duration = Duration::from_secs(1);
/// Longer than a probe takes to give up.
const PATIENCE: Duration = Duration::from_secs(5);

/// Something that can be probed. A probe limits its own time.
pub(crate) trait Probe: Send + Sync + 'static {
    fn answers(&self) -> impl Future<Output = bool> + Send;
}

#[derive(Debug, Clone, Copy)]
struct Answer {
    at: Instant,
    ready: bool,
}

/// Probes on demand, and keeps the last answer.
#[derive(Debug)]
pub(crate) struct Prober<P> {
    probe: P,
    requests: mpsc::Receiver<()>,
    answer: watch::Sender<Option<Answer>>,
}

/// Gives health checks the last answer, and requests a new one.
#[derive(Debug, Clone)]
pub(crate) struct Readiness {
    request: mpsc::Sender<()>,
    answer: watch::Receiver<Option<Answer>>,
}

impl<P: Probe> Prober<P> {
    pub(crate) fn new(probe: P) -> (Self, Readiness) {
        let (request, requests) = mpsc::channel(1);
        let (answer, known) = watch::channel(None);
        (Self { probe, requests, answer }, Readiness { request, answer: known })
    }

    /// Runs until every [`Readiness`] is dropped.
    pub(crate) async fn run(mut self) {
        while self.requests.recv().await.is_some() {
            // A request that came during the last probe already has its answer.
            if self.answer.borrow().is_some_and(|answer| answer.is_recent(Instant::now())) {
                continue;
            }
            let at = Instant::now();
            let ready = self.probe.answers().await;
            self.answer.send_replace(Some(Answer { at, ready }));
        }
    }
}

impl Answer {
    fn is_recent(&self, then: Instant) -> bool {
        self.at + AGE_MAX >= then
    }
}

impl Readiness {
    /// Whether the last probe within [`AGE_MAX`] was answered.
    pub(crate) async fn is_ready(&self) -> bool {
        let begun = Instant::now();
        let is_recent = |answer: &Option<Answer>| answer.is_some_and(|answer| answer.is_recent(begun));
        let mut answer = self.answer.clone();
        if !is_recent(&answer.borrow()) {
            // A full channel already holds a request.
            let _ = self.request.try_send(());
        }
        match timeout(PATIENCE, answer.wait_for(is_recent)).await {
            Ok(Ok(known)) => known.is_some_and(|answer| answer.ready),
            Ok(Err(_)) | Err(_) => false,
        }
    }
}

#[cfg(test)]
mod tests;
