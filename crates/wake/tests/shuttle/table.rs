//! A queue table in memory, its producers and its consumers.

use std::sync::Arc;

use reveille_wake::{Armed, Cause, Hub, HubOptions, Link, Outcome};
use shuttle::sync::Mutex;

pub(crate) const KEY: u8 = 7;

/// 20,000 unless the build says otherwise.
pub(crate) fn schedules() -> usize {
    option_env!("SHUTTLE_SCHEDULES").and_then(|number| number.parse().ok()).unwrap_or(20_000)
}

/// What a consumer does in which order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// As it should be.
    ArmThenClaim,
    /// The wrong order: the wake of a commit in between is lost (B1).
    ClaimThenArm,
}

#[derive(Clone)]
pub(crate) struct Table {
    pub(crate) rows: Arc<Mutex<usize>>,
    pub(crate) hub: Hub<u8>,
}

impl Table {
    pub(crate) fn new() -> Self {
        let (hub, _runner) = Hub::new(HubOptions::default());
        hub.set_link(Link::Proven { since: std::time::Instant::now() });
        Self { rows: Arc::new(Mutex::new(0)), hub }
    }

    /// Commits, then wakes: a wake is only for rows that can already be seen.
    pub(crate) fn push(&self, rows: usize) {
        *self.rows.lock().expect("it ends") += rows;
        self.hub.wake(&KEY, Cause::Pushed);
    }

    pub(crate) fn take(&self) -> usize {
        let mut rows = self.rows.lock().expect("it ends");
        let taken = (*rows).min(1);
        *rows -= taken;
        taken
    }

    /// Takes one row, however long that takes.
    pub(crate) fn consume(&self, order: Order) {
        shuttle::future::block_on(async {
            let early = if order == Order::ClaimThenArm { self.take() } else { 0 };
            let mut armed = self.hub.arm(KEY).expect("there is room");
            if order == Order::ClaimThenArm {
                armed.claim().found(Outcome::of(early, 1));
            }
            if early == 0 {
                self.consume_armed(&mut armed).await;
            }
        });
    }

    pub(crate) async fn consume_armed(&self, armed: &mut Armed<u8>) {
        loop {
            armed.woken().await;
            let claim = armed.claim();
            let taken = self.take();
            claim.found(Outcome::of(taken, 1));
            if taken > 0 {
                return;
            }
        }
    }
}
