//! One question at a time, asked on behalf of everybody.
//!
//! Owns the last answer of a [`Probe`]. Promises that an answer is at most [`FRESH`] old, and that
//! the question is asked by one task at most once in that time, whatever the number of requests and
//! however many of them are abandoned. Nobody asks, nothing is asked: an idle server is silent.

use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, timeout};

/// How old an answer may be.
const FRESH: Duration = Duration::from_secs(1);
/// Longer than a probe takes to give up.
const PATIENCE: Duration = Duration::from_secs(5);

/// Something that can be asked whether it is there. Bounds its own time.
pub(crate) trait Probe: Send + Sync + 'static {
    fn answers(&self) -> impl Future<Output = bool> + Send;
}

#[derive(Debug, Clone, Copy)]
struct Answer {
    at: Instant,
    ready: bool,
}

/// Asks, and keeps the answer.
#[derive(Debug)]
pub(crate) struct Prober<P> {
    probe: P,
    asked: mpsc::Receiver<()>,
    answer: watch::Sender<Option<Answer>>,
}

/// Where requests learn the answer.
#[derive(Debug, Clone)]
pub(crate) struct Readiness {
    ask: mpsc::Sender<()>,
    answer: watch::Receiver<Option<Answer>>,
}

impl<P: Probe> Prober<P> {
    pub(crate) fn new(probe: P) -> (Self, Readiness) {
        let (ask, asked) = mpsc::channel(1);
        let (answer, known) = watch::channel(None);
        (Self { probe, asked, answer }, Readiness { ask, answer: known })
    }

    /// Until nobody can ask any more.
    pub(crate) async fn run(mut self) {
        while self.asked.recv().await.is_some() {
            // Those who asked while the last answer was on its way have it by now.
            if self.answer.borrow().is_some_and(|answer| answer.is_new_since(Instant::now())) {
                continue;
            }
            let at = Instant::now();
            let ready = self.probe.answers().await;
            self.answer.send_replace(Some(Answer { at, ready }));
        }
    }
}

impl Answer {
    fn is_new_since(&self, then: Instant) -> bool {
        self.at + FRESH >= then
    }
}

impl Readiness {
    /// What a question asked within the last second found.
    pub(crate) async fn is_ready(&self) -> bool {
        let begun = Instant::now();
        let fresh = |answer: &Option<Answer>| answer.is_some_and(|answer| answer.is_new_since(begun));
        let mut answer = self.answer.clone();
        if !fresh(&answer.borrow()) {
            // Full means that somebody has asked already.
            let _ = self.ask.try_send(());
        }
        match timeout(PATIENCE, answer.wait_for(fresh)).await {
            Ok(Ok(known)) => known.is_some_and(|answer| answer.ready),
            Ok(Err(_)) | Err(_) => false,
        }
    }
}

#[cfg(test)]
mod tests;
