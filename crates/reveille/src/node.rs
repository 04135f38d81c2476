//! Wakes this process for work that other nodes commit, and other nodes for work of this process.
//!
//! Owns the node's row, the LISTEN connection with its heartbeat, and the broadcaster. Started by
//! the first source of work that is registered; a script that only pushes has only the broadcaster.
//! Knows no table: see [`WorkSource`].
//!
//! ```text
//!   this node                                          another node
//!   commit ──► hub.wake (at once, in memory)
//!      └─────► broadcaster ── NOTIFY, coalesced ──► listener ──► inbox ──► hub.wake
//!                                                 ▲
//!          heartbeat, every 12 s: this node lives · echo · other nodes · work ready or due next
//! ```
//!
//! Next: [`work_source`], [`listener`], [`heartbeat`], [`broadcaster`].

mod broadcaster;
mod budget;
mod erased;
mod figures;
mod heartbeat;
mod hint;
mod hub_source;
mod inbox;
mod listener;
mod lost;
mod node_id;
mod roster;
mod statements;
mod survey;
mod work_source;

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures_util::FutureExt;
use reveille_wake::Link;
use tokio_util::sync::CancellationToken;
use tracing::error;

pub use broadcaster::Broadcaster;
pub use figures::WakeFigures;
pub use hub_source::{ColumnKey, HubSource};
pub use survey::Survey;
pub use work_source::{Column, Hint, WorkSource};

use broadcaster::PendingHints;
use figures::Figures;
use inbox::Inbox;
use listener::Listener;
pub(crate) use node_id::NodeId;
use roster::Roster;
pub(crate) use statements::ALL as STATEMENTS;

use crate::database::pauses::Pauses;
use crate::database::shared::Shared;

/// Between attempts to connect.
const RECONNECT: Pauses = Pauses::after_one_at_once(Duration::from_millis(50), Duration::from_secs(5));
/// Between a panic and the restart, since the panic may repeat.
const AFTER_PANIC: Duration = Duration::from_secs(1);

/// Everything by which a process is woken and wakes others.
#[derive(Debug)]
pub(crate) struct Service {
    shared: Arc<Shared>,
    node: Node,
    roster: Roster,
    inbox: Inbox,
    pending_hints: PendingHints,
    figures: Figures,
    listening: OnceLock<()>,
}

/// The identity of this node, and its channel.
#[derive(Debug)]
struct Node {
    id: NodeId,
    name: String,
    channel: String,
    heartbeat: Duration,
}

impl Node {
    /// A node without a heartbeat for so long counts as gone: it may miss two, and a little more.
    fn silence(&self) -> Duration {
        self.heartbeat.mul_f64(2.5)
    }
}

impl Service {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        let node = Node {
            id: NodeId::random(),
            name: format!("{} (process {})", shared.settings.application_name, std::process::id()),
            channel: hint::channel(&shared.settings.schema),
            heartbeat: shared.settings.heartbeat,
        };
        Self {
            shared,
            node,
            roster: Roster::new(),
            inbox: Inbox::default(),
            pending_hints: PendingHints::default(),
            figures: Figures::default(),
            listening: OnceLock::new(),
        }
    }

    pub(crate) fn register<S: WorkSource>(self: &Arc<Self>, source: Arc<S>) -> Registration {
        let number = self.roster.add(source);
        self.listening.get_or_init(|| {
            let closing = &self.shared.closing;
            let (service, end) = (Arc::clone(self), closing.clone());
            let listen = move || Listener::new(Arc::clone(&service)).run(end.clone());
            self.shared.tasks.spawn(supervised("listener", closing.clone(), listen));
            let (service, end) = (Arc::clone(self), closing.clone());
            let wake = move || inbox::run(Arc::clone(&service), end.clone());
            self.shared.tasks.spawn(supervised("inbox", closing.clone(), wake));
        });
        Registration { service: Arc::clone(self), number }
    }

    pub(crate) fn broadcaster(self: &Arc<Self>) -> Broadcaster {
        Broadcaster::new(Arc::clone(self))
    }

    pub(crate) fn channel(&self) -> &str {
        &self.node.channel
    }

    pub(crate) fn link(&self) -> Link {
        self.roster.link()
    }

    pub(crate) fn figures(&self) -> WakeFigures {
        self.figures.read()
    }
}

/// Runs a part of the service until it returns, and again when it panicked in a source's or an
/// observer's code: a part that died unnoticed would leave all waiting consumers asleep.
async fn supervised<F: Future<Output = ()>>(part: &'static str, closing: CancellationToken, start: impl Fn() -> F) {
    while AssertUnwindSafe(async { start().await }).catch_unwind().await.is_err() {
        error!(part, retry_in = ?AFTER_PANIC, "a part of the wake service panicked, restarting it");
        let _ = closing.run_until_cancelled(tokio::time::sleep(AFTER_PANIC)).await;
    }
}

/// Keeps a source of work registered; dropping it ends that.
#[derive(Debug)]
#[must_use = "the source is woken only while its registration lives"]
pub struct Registration {
    service: Arc<Service>,
    number: u64,
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.service.roster.remove(self.number);
    }
}
