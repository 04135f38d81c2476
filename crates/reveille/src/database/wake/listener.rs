//! Turns notifications into rings.
//!
//! Owns the one LISTEN connection of this process. Promises that whatever may have been missed (a lost connection, the
//! moment before LISTEN) is followed by a ring of every waited key, that a link is called proven only after an echo came
//! round, and that a silent one is given up two seconds after its heartbeat. Knows no table and no message.
//!
//! Next: [`super::inbox`] for what it hears, [`super::heartbeat`] for what it says.

use std::collections::BTreeSet;
use std::future::poll_fn;
use std::sync::Arc;
use std::time::{Duration, Instant};

use reveille_wake::{Cause, LinkState};
use tokio::sync::watch;
use tokio::time::{sleep_until, timeout};
use tokio_postgres::{AsyncMessage, Client};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::heartbeat::{Heartbeat, Peers};
use super::hint::{self, Said};
use super::pause::Pause;
use super::{NodeId, Service};
use crate::database::connector::{Opened, Purpose, Wire};
use crate::database::error::DatabaseError;
use crate::database::statements::{JOIN, LEAVE};

/// How long the echo of a heartbeat, and the heartbeat's own answer, may take.
const ECHO_WITHIN: Duration = Duration::from_secs(2);
/// How long leaving may hold up a close.
const LEAVE_WITHIN: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) struct Listener {
    service: Arc<Service>,
    link: LinkState,
    peers: BTreeSet<NodeId>,
}

/// One connection's life.
struct Session {
    client: Client,
    heartbeat: Heartbeat,
    /// The number of the last echo that came round, and when.
    echoes: watch::Receiver<(u64, Instant)>,
    /// Cancelled when the connection ends.
    ended: CancellationToken,
    echo: u64,
    beat_at: Instant,
}

/// Why a session ended, or did not begin. Told to the log only: the link says it to everybody else.
#[derive(Debug, thiserror::Error)]
enum Lost {
    #[error("could not open it")]
    Unopened(#[from] DatabaseError),
    #[error("a statement on it failed")]
    Failed(#[from] tokio_postgres::Error),
    #[error(
        "no answer or echo came within {0:?}; if this repeats, a transaction pooler swallows notifications, and a direct URL for LISTEN is needed"
    )]
    Silent(Duration),
    #[error("it ended")]
    Ended,
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
        Self { service, link: LinkState::new(ECHO_WITHIN), peers: BTreeSet::new() }
    }

    /// Until the database closes: connects, listens, and connects again.
    pub(super) async fn run(mut self, closing: CancellationToken) {
        let mut pause = Pause::default();
        while !closing.is_cancelled() {
            let ended = match closing.run_until_cancelled(self.connect()).await {
                Some(Ok(session)) => self.serve(session, &closing, &mut pause).await,
                Some(Err(error)) => Err(error),
                None => return,
            };
            let Err(lost) = ended else { return };
            let retry_in = self.lost(&lost, &mut pause);
            let _ = closing.run_until_cancelled(tokio::time::sleep(retry_in)).await;
        }
    }

    fn lost(&mut self, lost: &Lost, pause: &mut Pause) -> Duration {
        self.link.attempt_failed(now());
        self.service.roster.set_link(self.link.link());
        let retry_in = pause.next();
        let error: &dyn std::error::Error = lost;
        warn!(error, ?retry_in, "lost the LISTEN connection, trying again");
        retry_in
    }

    /// The order matters: the row is committed before LISTEN, and LISTEN before anybody looks. Whoever pushes either sees
    /// the row and tells us, or has committed before our first look.
    async fn connect(&self) -> Result<Session, Lost> {
        let Service { shared, node, .. } = self.service.as_ref();
        let opened = shared.listen.open(&shared.settings, Purpose::Listen).await?;
        let (client, echoes, ended) = self.read(opened);
        let setting_up = async {
            let (join, listen) = (JOIN.text(&shared.settings.schema), listen_text(&node.channel));
            client.execute(&join, &[&node.id.number(), &node.name]).await?;
            client.batch_execute(&listen).await?;
            Heartbeat::prepare(&client, &shared.settings.schema, &self.service.roster).await
        };
        let heartbeat = answered(shared.settings.connect_timeout, setting_up).await?;
        Ok(Session { client, heartbeat, echoes, ended, echo: 0, beat_at: now() })
    }

    /// Reads on a task of its own, which waits for nothing but the socket: a listener that stops reading holds back
    /// VACUUM for the whole database.
    fn read(&self, opened: Opened) -> (Client, watch::Receiver<(u64, Instant)>, CancellationToken) {
        let (heard, echoes) = watch::channel((0, now()));
        let ended = CancellationToken::new();
        let (service, end) = (Arc::clone(&self.service), ended.clone().drop_guard());
        self.service.shared.tasks.spawn(async move {
            let _end = end;
            read(opened.wire, &service, &heard).await;
        });
        (opened.client, echoes, ended)
    }

    /// Until the connection fails, or the database closes (`Ok`).
    async fn serve(
        &mut self,
        mut session: Session,
        closing: &CancellationToken,
        pause: &mut Pause,
    ) -> Result<(), Lost> {
        self.service.figures.connected();
        loop {
            match self.next_turn(&mut session, closing).await {
                Turn::Beat => self.beat(&mut session).await?,
                Turn::Echoed(at) => {
                    pause.reset();
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

    async fn next_turn(&self, session: &mut Session, closing: &CancellationToken) -> Turn {
        let overdue = self.link.check_at();
        let echo = session.echo;
        tokio::select! {
            biased;
            () = closing.cancelled() => Turn::Shutdown,
            () = session.ended.cancelled() => Turn::Ended,
            Ok(heard) = session.echoes.wait_for(|heard| heard.0 == echo), if overdue.is_some() => Turn::Echoed(heard.1),
            () = until(overdue) => Turn::Overdue,
            () = until(Some(session.beat_at)), if overdue.is_none() => Turn::Beat,
        }
    }

    async fn beat(&mut self, session: &mut Session) -> Result<(), Lost> {
        let Service { shared, node, roster, .. } = self.service.as_ref();
        if session.heartbeat.is_stale(roster) {
            let prepared = Heartbeat::prepare(&session.client, &shared.settings.schema, roster);
            session.heartbeat = answered(ECHO_WITHIN, prepared).await?;
        }
        session.echo += 1;
        session.beat_at = now() + node.heartbeat;
        self.link.probed(now());
        let echo = hint::echo(node.id, session.echo);
        let Peers(peers) = answered(ECHO_WITHIN, session.heartbeat.beat(&session.client, node, &echo)).await?;
        self.service.figures.beat(peers.len());
        // It may have died between its commit and its hint. One that left in order is missed too: one look, no harm.
        if !self.peers.is_subset(&peers) {
            info!("another node has gone");
            self.service.roster.ring_all(Cause::PeerLost);
        }
        self.peers = peers;
        Ok(())
    }

    fn proven(&mut self, at: Instant) {
        if let Some(overdue) = self.link.check_at() {
            self.service.figures.echoed(at.saturating_duration_since(overdue.checked_sub(ECHO_WITHIN).unwrap_or(at)));
        }
        let was_proven = self.link.link().is_proven();
        let link = self.link.echoed(at);
        if !was_proven {
            info!("hints arrive: the LISTEN connection is proven");
        }
        self.service.roster.set_link(link);
    }

    async fn leave(&self, session: &Session) {
        let Service { shared, node, .. } = self.service.as_ref();
        let leave = LEAVE.text(&shared.settings.schema);
        // If this fails, the row is forgotten by whoever finds it silent.
        let _ = timeout(LEAVE_WITHIN, session.client.execute(&leave, &[&node.id.number()])).await;
    }
}

async fn answered<T>(
    within: Duration,
    asked: impl Future<Output = Result<T, tokio_postgres::Error>>,
) -> Result<T, Lost> {
    Ok(timeout(within, asked).await.map_err(|_| Lost::Silent(within))??)
}

async fn read(mut wire: Wire, service: &Service, echoes: &watch::Sender<(u64, Instant)>) {
    while let Some(Ok(message)) = poll_fn(|context| wire.poll_message(context)).await {
        let AsyncMessage::Notification(notification) = message else { continue };
        match hint::parse(notification.payload()) {
            Some(Said::Echo { origin, number }) if origin == service.node.id => {
                echoes.send_replace((number, now()));
            }
            // What we said ourselves has rung here already.
            Some(Said::Hints { origin, hints }) if origin != Some(service.node.id) => {
                service.inbox.hear(hints, &service.figures);
            }
            Some(Said::Echo { .. } | Said::Hints { .. }) | None => {}
        }
    }
}

/// The echo need not survive a crash, so it does not wait for the disk.
fn listen_text(channel: &str) -> String {
    format!("set synchronous_commit = off; listen {channel}")
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
