//! Wakes this process for what happens in the database, and others for what happens here.
//!
//! Owns the node's row, the LISTEN connection with its heartbeat, and the herald. Started by the first source of work that
//! is registered; a script that only pushes has none of it but the herald. Knows no table: see [`WorkSource`].
//!
//! ```text
//!   this node                                          another node
//!   commit ──► hub.ring (at once, in memory)
//!      └─────► herald ── NOTIFY, coalesced ──► listener ──► inbox ──► hub.ring
//!                                                 ▲
//!              heartbeat, every 12 s: I live · echo · who else lives · what is ready or due next
//! ```
//!
//! Next: [`work_source`], [`listener`], [`heartbeat`], [`herald`].

mod budget;
mod figures;
mod heartbeat;
mod herald;
mod hint;
mod inbox;
mod listener;
mod node_id;
mod pause;
mod roster;
mod work_source;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use reveille_wake::Link;

pub use figures::WakeFigures;
pub use herald::Herald;
pub use work_source::{HintKey, HubSource, WorkSource};

use figures::Figures;
use herald::Outbox;
use inbox::Inbox;
use listener::Listener;
pub(crate) use node_id::NodeId;
use roster::Roster;

use super::shared::Shared;

/// What a process needs to be woken and to wake others.
#[derive(Debug)]
pub(crate) struct Service {
    shared: Arc<Shared>,
    node: Node,
    roster: Roster,
    inbox: Inbox,
    outbox: Outbox,
    figures: Figures,
    listening: OnceLock<()>,
}

/// Who and where this node is.
#[derive(Debug)]
struct Node {
    id: NodeId,
    name: String,
    channel: String,
    heartbeat: Duration,
}

impl Node {
    /// After how long without a heartbeat a node counts as gone: two may be missed, and a little more.
    fn silence(&self) -> Duration {
        self.heartbeat.mul_f64(2.5)
    }
}

impl Service {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
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
            outbox: Outbox::default(),
            figures: Figures::default(),
            listening: OnceLock::new(),
        }
    }

    pub(super) fn register(self: &Arc<Self>, source: Arc<dyn WorkSource>) -> Registration {
        let number = self.roster.add(source);
        self.listening.get_or_init(|| {
            let closing = self.shared.closing.clone();
            self.shared.tasks.spawn(Listener::new(Arc::clone(self)).run(closing.clone()));
            let service = Arc::clone(self);
            self.shared
                .tasks
                .spawn(async move { closing.run_until_cancelled(service.inbox.ring(&service.roster)).await });
        });
        Registration { service: Arc::clone(self), number }
    }

    pub(super) fn herald(self: &Arc<Self>) -> Herald {
        Herald::new(Arc::clone(self))
    }

    pub(super) fn channel(&self) -> &str {
        &self.node.channel
    }

    pub(super) fn link(&self) -> Link {
        self.roster.link()
    }

    pub(super) fn figures(&self) -> WakeFigures {
        self.figures.read()
    }
}

/// Keeps a source of work registered; dropping it ends that.
#[derive(Debug)]
#[must_use = "the source is rung only while its registration lives"]
pub struct Registration {
    service: Arc<Service>,
    number: u64,
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.service.roster.remove(self.number);
    }
}
