//! Carries the bytes of one connection through whatever the weather is.

use std::io;
use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, split};
use tokio::time::sleep;

use super::{Direction, Shared, Upstream, Weather};

/// A wire that cuts everything when it is touched, once.
#[derive(Debug, Clone)]
pub(super) enum Trip {
    Bytes { direction: Direction, left: usize },
    Sent(Vec<u8>),
}

/// One connection through the proxy; counted for as long as it lives.
#[derive(Debug)]
pub(super) struct Line {
    shared: Arc<Shared>,
}

/// What to do with a piece.
enum Fate {
    Forward,
    /// Forward this many bytes of it, then cut.
    ForwardAndCut(usize),
}

impl Line {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        shared.open.send_modify(|open| *open += 1);
        Self { shared }
    }

    pub(super) fn upstream(&self) -> &Upstream {
        &self.shared.upstream
    }

    /// Until either side ends. A swallowed line never ends by itself.
    pub(super) async fn carry<C, S>(&self, client: C, server: S)
    where
        C: AsyncRead + AsyncWrite,
        S: AsyncRead + AsyncWrite,
    {
        let (from_client, to_client) = split(client);
        let (from_server, to_server) = split(server);
        tokio::select! {
            _ = self.pump(Direction::ToServer, from_client, to_server) => {}
            _ = self.pump(Direction::ToClient, from_server, to_client) => {}
        }
    }

    async fn pump(
        &self,
        direction: Direction,
        mut from: impl AsyncRead + Unpin,
        mut to: impl AsyncWrite + Unpin,
    ) -> io::Result<()> {
        let mut piece = vec![0; 16 * 1024];
        loop {
            let length = from.read(&mut piece).await?;
            if self.weather_is_swallowing().await {
                if length == 0 {
                    std::future::pending::<()>().await;
                }
                continue;
            }
            if length == 0 {
                return Ok(());
            }
            match self.fate(direction, &piece[..length]) {
                Fate::Forward => to.write_all(&piece[..length]).await?,
                Fate::ForwardAndCut(bytes) => {
                    to.write_all(&piece[..bytes]).await?;
                    to.flush().await?;
                    self.shared.cut();
                }
            }
        }
    }

    /// Waits out delays and stalls; says whether the piece is to be swallowed.
    async fn weather_is_swallowing(&self) -> bool {
        let mut weather = self.shared.weather.subscribe();
        let now = *weather.borrow_and_update();
        match now {
            Weather::Fair | Weather::Refused => false,
            Weather::Swallowed => true,
            Weather::Delayed(time) => {
                sleep(time).await;
                false
            }
            Weather::Stalled => {
                // The sender lives in `self.shared`, so this cannot fail.
                let after = weather.wait_for(|weather| *weather != Weather::Stalled).await;
                after.is_ok_and(|weather| *weather == Weather::Swallowed)
            }
        }
    }

    fn fate(&self, now: Direction, piece: &[u8]) -> Fate {
        let mut fate = Fate::Forward;
        self.shared.trip.send_if_modified(|trip| {
            fate = touch(trip, now, piece);
            true
        });
        fate
    }
}

fn touch(trip: &mut Option<Trip>, now: Direction, piece: &[u8]) -> Fate {
    match trip {
        Some(Trip::Bytes { direction, left }) if *direction == now => {
            if piece.len() < *left {
                *left -= piece.len();
                return Fate::Forward;
            }
            let bytes = *left;
            *trip = None;
            Fate::ForwardAndCut(bytes)
        }
        Some(Trip::Sent(text)) if now == Direction::ToServer && contains(piece, text) => {
            *trip = None;
            Fate::ForwardAndCut(piece.len())
        }
        _ => Fate::Forward,
    }
}

fn contains(piece: &[u8], text: &[u8]) -> bool {
    piece.windows(text.len().max(1)).any(|window| window == text)
}

impl Drop for Line {
    fn drop(&mut self) {
        self.shared.open.send_modify(|open| *open -= 1);
    }
}
