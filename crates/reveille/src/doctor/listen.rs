//! Whether notifications arrive over the URL we were given.
//!
//! A transaction pooler accepts LISTEN and swallows the notifications, without an error. So the
//! check listens on a channel of its own and notifies it from another connection.

use std::future::poll_fn;
use std::time::Duration;

use tokio::time::{Instant, timeout};
use tokio_postgres::AsyncMessage;

use super::finding::Finding;
use crate::database::connection::Connection;
use crate::database::connector::{Purpose, Wire};
use crate::database::error::DatabaseError;
use crate::database::shared::Shared;
use crate::database::statements::NOTIFY;

/// On a healthy link it takes a millisecond.
const PATIENCE: Duration = Duration::from_secs(2);

/// How long a notification took, or `None` when it did not come.
pub(super) async fn echo(shared: &Shared, other: &Connection) -> Result<Option<Duration>, DatabaseError> {
    let opened = shared.listen.open(&shared.settings, Purpose::Examine).await?;
    let (client, mut wire) = (opened.client, opened.wire);
    let channel = format!("reveille_echo_{:016x}", fastrand::u64(..));
    let listen = format!("listen {channel}");
    let listening = async {
        tokio::select! {
            listening = client.batch_execute(&listen) => listening,
            _ = notified(&mut wire, &channel) => Ok(()),
        }
    };
    let listening = timeout(PATIENCE, listening).await;
    let Ok(listening) = listening else { return Ok(None) };
    listening.map_err(|error| opened.place.statement("LISTEN", &error))?;
    let begun = Instant::now();
    other.query(&NOTIFY, &[&channel, &""]).await?;
    let arrived = timeout(PATIENCE, notified(&mut wire, &channel)).await;
    Ok(arrived.is_ok_and(|arrived| arrived).then(|| begun.elapsed()))
}

/// Wait for a notification on `channel`; false when the connection ends first.
async fn notified(wire: &mut Wire, channel: &str) -> bool {
    while let Some(Ok(message)) = poll_fn(|cx| wire.poll_message(cx)).await {
        if matches!(&message, AsyncMessage::Notification(sent) if sent.channel() == channel) {
            return true;
        }
    }
    false
}

pub(super) fn judge(echo: Option<Duration>) -> Finding {
    match echo {
        Some(took) => Finding::ok("listen", format!("a notification arrived after {took:.1?}")),
        None => Finding::fail(
            "listen",
            format!(
                "LISTEN was accepted, but no notification arrived within {PATIENCE:?}: a transaction pooler swallows them"
            ),
            "give a URL for LISTEN that leads to PostgreSQL itself",
        ),
    }
}
