//! Turns notifications into wake-ups.
//!
//! Owns the one LISTEN connection of this process. Promises that anything missed (a lost
//! connection, the moment before LISTEN) is followed by a wake-up of every waited key, that a link
//! is called proven only after an echo arrived, and that a silent one is given up two seconds after
//! its heartbeat. Knows no table and no message.
//!
//! Next: [`super::inbox`] for what it receives, [`super::heartbeat`] for what it sends.

use std::collections::BTreeSet;
use std::future::poll_fn;
use std::sync::Arc;
use std::time::{Duration, Instant};

use reveille_wake::{Cause, LinkState};
use tokio::sync::watch;
use tokio::time::{sleep_until, timeout};
use tokio_postgres::{AsyncMessage, Client};
use tokio_util::sync::{CancellationToken, DropGuard};
use tracing::{debug, info, warn};

use super::heartbeat::{Beat, Heartbeat};
use super::hint::{self, Payload};
use super::lost::{Lost, answered};
use super::statements::{JOIN, LEAVE};
use super::{NodeId, RECONNECT, Service};
use crate::database::connection::Param;
use crate::database::connector::{Opened, Purpose, Wire};
use crate::database::options::{Settings, StatementMode};
use crate::database::pauses::Pauses;

/// How long the echo of a heartbeat, and the heartbeat's own answer, may take.
const ECHO_WITHIN: Duration = Duration::from_secs(2);
/// How long the server may work on a heartbeat: it should refuse before we take it for silent.
const STATEMENT_WITHIN: Duration = Duration::from_millis(1500);
/// How long leaving may hold up a close.
const LEAVE_WITHIN: Duration = Duration::from_secs(1);
/// A pooler does not go away by itself.
const POOLER_AGAIN: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub(super) struct Listener {
    service: Arc<Service>,
    link: LinkState,
    peers: BTreeSet<NodeId>,
    /// Whether the log shall say that LISTEN is proven: at first, and after a line about its loss.
    is_worth_a_line: bool,
}

/// One connection's life.
struct Session {
    client: Client,
    heartbeat: Heartbeat,
    probe: watch::Sender<Probe>,
    /// Cancelled when the connection ends.
    ended: CancellationToken,
    beat_at: Instant,
    /// Ends the reader. A connection that owes an answer would otherwise live until it breaks.
    _over: DropGuard,
}

/// The echo we wait for. Its number is random: neither a late echo of an earlier session nor a
/// forged one can pass for it, or push it aside.
#[derive(Debug)]
struct Probe {
    number: u64,
    echoed_at: Option<Instant>,
}

/// What can happen to a session.
enum Turn {
    Beat,
    Echoed(Instant),
    Overdue,
    Ended,
    Shutdown,
}

impl Listener {
    pub(super) fn new(service: Arc<Service>) -> Self {
        let mut link = LinkState::new(ECHO_WITHIN);
        if service.roster.link().is_proven() {
            // The listener before this one panicked, and no notification was read since.
            link.echoed(now());
            link.lost(now());
        }
        Self { service, link, peers: BTreeSet::new(), is_worth_a_line: true }
    }

    /// Until the database closes: connects, listens, and connects again.
    pub(super) async fn run(mut self, closing: CancellationToken) {
        self.service.roster.set_link(self.link.link());
        let mut pauses = RECONNECT;
        while !closing.is_cancelled() {
            let ended = match closing.run_until_cancelled(self.connect()).await {
                Some(Ok(session)) => self.serve(session, &closing, &mut pauses).await,
                Some(Err(error)) => Err(error),
                None => return,
            };
            let Err(lost) = ended else { return };
            let retry_in = self.lost(&lost, &mut pauses);
            let _ = closing.run_until_cancelled(tokio::time::sleep(retry_in)).await;
        }
    }

    fn lost(&mut self, lost: &Lost, pauses: &mut Pauses) -> Duration {
        self.link.attempt_failed(now());
        self.service.roster.set_link(self.link.link());
        let retry_in = if matches!(lost, Lost::Pooler(_)) { POOLER_AGAIN } else { pauses.next() };
        if lost.is_outage() {
            self.service.shared.listen.outage.failed(lost.as_error());
            debug!(error = lost.as_error(), ?retry_in, "no LISTEN connection because of an outage, trying again");
        } else {
            warn!(
                error = lost.as_error(),
                ?retry_in,
                "no LISTEN connection, trying again; until then work is found by polling"
            );
            self.is_worth_a_line = true;
        }
        retry_in
    }

    /// The order matters: the row is committed before LISTEN, and LISTEN before the first claim
    /// round. A producer either sees the row and notifies, or has committed before that round.
    async fn connect(&self) -> Result<Session, Lost> {
        let Service { shared, node, .. } = self.service.as_ref();
        // Always with the settings of a session of our own: a pooler refuses them, or is recognized
        // by their absence.
        let direct = Settings { mode: StatementMode::Direct, ..shared.settings.clone() };
        let opened = shared.listen.open(&direct, Purpose::Listen).await?;
        let session = self.read(opened);
        let setting_up = async {
            let params: [Param<'_>; 2] = [&node.id.number(), &node.name];
            let typed: Vec<_> = params.into_iter().zip(JOIN.types.iter().cloned()).collect();
            let joined = session.client.execute_typed(&JOIN.text(&shared.settings.schema), &typed).await?;
            if joined > 0 {
                session.client.batch_execute(&listen_text(&node.channel)).await?;
            }
            Ok(joined)
        };
        match answered(shared.settings.connect_timeout, setting_up).await? {
            0 => Err(Lost::Pooler(None)),
            _ => Ok(session),
        }
    }

    /// Reads on a task of its own, which waits for nothing but the socket: a listener that stops
    /// reading holds back VACUUM for the whole database.
    fn read(&self, opened: Opened) -> Session {
        let probe = watch::Sender::new(Probe { number: 0, echoed_at: None });
        let (ended, over) = (CancellationToken::new(), CancellationToken::new());
        let (service, echo, end) = (Arc::clone(&self.service), probe.clone(), ended.clone().drop_guard());
        let until = over.clone();
        self.service.shared.tasks.spawn(async move {
            let _end = end;
            until.run_until_cancelled(read(opened.wire, &service, &echo)).await;
        });
        let (client, heartbeat, beat_at) = (opened.client, Heartbeat::default(), now());
        Session { client, heartbeat, probe, ended, beat_at, _over: over.drop_guard() }
    }

    /// Until the connection fails, or the database closes (`Ok`).
    async fn serve(
        &mut self,
        mut session: Session,
        closing: &CancellationToken,
        pauses: &mut Pauses,
    ) -> Result<(), Lost> {
        self.service.figures.connected();
        loop {
            match self.next_turn(&session, closing).await {
                // Dropped in the middle by a close: then we leave, and need no answer.
                Turn::Beat => closing.run_until_cancelled(self.beat(&mut session)).await.unwrap_or(Ok(()))?,
                Turn::Echoed(at) => {
                    pauses.reset();
                    self.proven(at);
                }
                Turn::Overdue => {
                    self.service.roster.set_link(self.link.check(now()));
                    return Err(Lost::Silent(ECHO_WITHIN));
                }
                Turn::Ended => return Err(Lost::Ended),
                Turn::Shutdown => {
                    self.leave(&session).await;
                    return Ok(());
                }
            }
        }
    }

    async fn next_turn(&self, session: &Session, closing: &CancellationToken) -> Turn {
        let overdue = self.link.check_at();
        tokio::select! {
            biased;
            () = closing.cancelled() => Turn::Shutdown,
            () = session.ended.cancelled() => Turn::Ended,
            at = echoed(&session.probe), if overdue.is_some() => Turn::Echoed(at),
            () = until(overdue) => Turn::Overdue,
            () = until(Some(session.beat_at)), if overdue.is_none() => Turn::Beat,
        }
    }

    async fn beat(&mut self, session: &mut Session) -> Result<(), Lost> {
        let Service { shared, node, roster, .. } = self.service.as_ref();
        let number = fastrand::u64(..);
        session.probe.send_replace(Probe { number, echoed_at: None });
        session.beat_at = now() + node.heartbeat;
        self.link.probed(now());
        let (client, schema) = (&session.client, &shared.settings.schema);
        let beat = Beat { client, schema, node, roster, within: ECHO_WITHIN };
        let nodes = session.heartbeat.beat(beat, &hint::echo(node.id, number)).await?;
        self.service.figures.beat(nodes.peers.len());
        // A node that is gone may have died between its commit and its hint. After one that left in
        // order the claim round is needless and does no harm.
        if !self.peers.is_subset(&nodes.peers) {
            info!("another node has gone");
            roster.wake_all(Cause::PeerLost);
        }
        if nodes.was_silent {
            warn!("this node was silent for so long that the other nodes took it for dead");
            roster.wake_all(Cause::Reconnected);
        }
        self.peers = nodes.peers;
        Ok(())
    }

    fn proven(&mut self, at: Instant) {
        if let Some(overdue) = self.link.check_at() {
            self.service.figures.echoed(at.saturating_duration_since(overdue.checked_sub(ECHO_WITHIN).unwrap_or(at)));
        }
        let was_proven = self.link.link().is_proven();
        let link = self.link.echoed(at);
        if !was_proven {
            // After an outage, whose end has a line of its own, this adds nothing.
            if std::mem::take(&mut self.is_worth_a_line) {
                info!("hints arrive: the LISTEN connection is proven");
            } else {
                debug!("hints arrive again: the LISTEN connection is proven");
            }
        }
        self.service.roster.set_link(link);
    }

    async fn leave(&self, session: &Session) {
        let Service { shared, node, .. } = self.service.as_ref();
        let (leave, id) = (LEAVE.text(&shared.settings.schema), node.id.number());
        let typed: [(Param<'_>, _); 1] = [(&id, LEAVE.types[0].clone())];
        // If this fails, another node's heartbeat deletes the row.
        let _ = timeout(LEAVE_WITHIN, session.client.execute_typed(&leave, &typed)).await;
    }
}

async fn read(mut wire: Wire, service: &Service, probe: &watch::Sender<Probe>) {
    while let Some(Ok(message)) = poll_fn(|context| wire.poll_message(context)).await {
        let AsyncMessage::Notification(notification) = message else { continue };
        match hint::parse(notification.payload()) {
            Some(Payload::Echo { origin, number }) if origin == service.node.id => {
                probe.send_if_modified(|probe| probe.accept(number));
            }
            // A hint of this process has already woken its sources.
            Some(Payload::Hints { origin, hints }) if origin != Some(service.node.id) => {
                service.inbox.put(hints, &service.figures);
            }
            Some(Payload::Echo { .. } | Payload::Hints { .. }) | None => {}
        }
    }
}

/// The echo need not survive a crash, so it does not wait for the disk.
fn listen_text(channel: &str) -> String {
    let limit = STATEMENT_WITHIN.as_millis();
    format!("set synchronous_commit = off; set statement_timeout = {limit}; listen {channel}")
}

impl Probe {
    /// Whether this is the echo that is waited for.
    fn accept(&mut self, number: u64) -> bool {
        let is_it = self.number == number && self.echoed_at.is_none();
        if is_it {
            self.echoed_at = Some(now());
        }
        is_it
    }
}

async fn echoed(probe: &watch::Sender<Probe>) -> Instant {
    let mut probe = probe.subscribe();
    let at = probe.wait_for(|probe| probe.echoed_at.is_some()).await.ok().and_then(|probe| probe.echoed_at);
    match at {
        Some(at) => at,
        None => std::future::pending().await,
    }
}

async fn until(at: Option<Instant>) {
    match at {
        Some(at) => sleep_until(at.into()).await,
        None => std::future::pending().await,
    }
}

/// The clock of our timers, which tests can pause.
fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}
