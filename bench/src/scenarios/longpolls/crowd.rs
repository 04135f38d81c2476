//! All clients that wait: a connection and a task for each.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context;
use futures_util::future::try_join_all;
use reveille_testkit::scenario::wire::Wire;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::popped::{body, messages};

/// Connections that are made at once: fewer than a listening socket keeps in line.
const AT_ONCE: usize = 200;

/// The waiting clients, and their answers.
#[derive(Debug)]
pub(super) struct Crowd {
    answers: mpsc::Receiver<Answer>,
    leave_when_answered: Arc<AtomicBool>,
    tasks: JoinSet<anyhow::Result<()>>,
}

/// The answer to one poll.
#[derive(Debug)]
pub(super) enum Answer {
    /// Its time is over; how late the answer came. Negative: too early.
    Nothing {
        late_ms: f64,
    },
    Message(Taken),
}

/// A message that one of them holds.
#[derive(Debug)]
pub(super) struct Taken {
    pub(super) transaction_id: String,
    pub(super) acknowledgement: String,
}

struct Waiter {
    wire: Wire,
    path: String,
    wait: Duration,
    sender: mpsc::Sender<Answer>,
    leave_when_answered: Arc<AtomicBool>,
}

impl Crowd {
    pub(super) async fn gather(address: SocketAddr, count: usize, wait: Duration, queue: &str) -> anyhow::Result<Self> {
        let (sender, answers) = mpsc::channel(2 * count);
        let leave_when_answered = Arc::new(AtomicBool::new(false));
        let path = format!("/api/v1/pop/queue/{queue}?wait=true&timeout={}", wait.as_millis());
        let mut tasks = JoinSet::new();
        for first in (0..count).step_by(AT_ONCE) {
            let some = (first..count.min(first + AT_ONCE)).map(|_| Wire::connect(address));
            for wire in try_join_all(some).await? {
                let (path, sender, leave_when_answered) = (path.clone(), sender.clone(), leave_when_answered.clone());
                tasks.spawn(Waiter { wire, path, wait, sender, leave_when_answered }.run());
            }
        }
        Ok(Self { answers, leave_when_answered, tasks })
    }

    /// From here on no client comes back after it got a message.
    pub(super) fn leave_when_answered(&self) {
        self.leave_when_answered.store(true, Ordering::Relaxed);
    }

    /// The next answer to any of them. Fails with the first of them that fails.
    pub(super) async fn next(&mut self) -> anyhow::Result<Answer> {
        loop {
            tokio::select! {
                biased;
                answer = self.answers.recv() => return answer.context("no client is left"),
                Some(ended) = self.tasks.join_next() => ended??,
            }
        }
    }

    /// The next message; answers without one are passed over.
    pub(super) async fn next_message(&mut self) -> anyhow::Result<Taken> {
        loop {
            if let Answer::Message(taken) = self.next().await? {
                return Ok(taken);
            }
        }
    }
}

impl Waiter {
    async fn run(mut self) -> anyhow::Result<()> {
        loop {
            let began = Instant::now();
            let reply = self.wire.get(&self.path).await?;
            let took = began.elapsed();
            if reply.status == 204 {
                let late_ms = (took.as_secs_f64() - self.wait.as_secs_f64()) * 1000.0;
                self.sender.send(Answer::Nothing { late_ms }).await?;
                continue;
            }
            let answer = body(reply)?;
            let messages = messages(&answer)?;
            let [message] = messages.as_slice() else { anyhow::bail!("{} messages for one", messages.len()) };
            let transaction_id = message.transaction_id.to_owned();
            self.sender
                .send(Answer::Message(Taken { transaction_id, acknowledgement: message.acknowledgement() }))
                .await?;
            if self.leave_when_answered.load(Ordering::Relaxed) {
                return Ok(());
            }
        }
    }
}
