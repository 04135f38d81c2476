//! Ends a connection whose client takes no bytes.
//!
//! Without this a client that asks and never reads holds its connection, and the answers to it, for ever: hyper waits
//! for the socket without a limit.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};

/// A stream whose writes fail when none of them gets on for `limit`.
pub(crate) struct Stall<S> {
    stream: S,
    limit: Duration,
    /// Runs while a write waits.
    patience: Pin<Box<Sleep>>,
    waiting: bool,
}

impl<S> Stall<S> {
    pub(crate) fn new(stream: S, limit: Duration) -> Self {
        Self { stream, limit, patience: Box::pin(tokio::time::sleep(limit)), waiting: false }
    }

    fn bounded<T>(&mut self, cx: &mut Context<'_>, progress: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if progress.is_ready() {
            self.waiting = false;
            return progress;
        }
        if !self.waiting {
            self.waiting = true;
            self.patience.as_mut().reset(Instant::now() + self.limit);
        }
        match self.patience.as_mut().poll(cx) {
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Stall<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Stall<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let progress = Pin::new(&mut self.stream).poll_write(cx, buf);
        self.bounded(cx, progress)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let progress = Pin::new(&mut self.stream).poll_write_vectored(cx, bufs);
        self.bounded(cx, progress)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let progress = Pin::new(&mut self.stream).poll_flush(cx);
        self.bounded(cx, progress)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let progress = Pin::new(&mut self.stream).poll_shutdown(cx);
        self.bounded(cx, progress)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    #[tokio::test(start_paused = true)]
    async fn a_write_that_nobody_takes_fails_after_the_limit() {
        let (ours, _theirs) = tokio::io::duplex(8);
        let mut stream = Stall::new(ours, Duration::from_secs(5));
        let begun = Instant::now();

        let error = stream.write_all(&[0; 64]).await.unwrap_err();

        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert_eq!(begun.elapsed().as_secs(), 5);
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_reader_that_gets_on_is_served() {
        let (ours, mut theirs) = tokio::io::duplex(8);
        let mut stream = Stall::new(ours, Duration::from_secs(5));
        let reading = async {
            let mut every = tokio::time::interval(Duration::from_secs(4));
            let mut some = [0; 8];
            for _ in 0..8 {
                every.tick().await;
                theirs.read_exact(&mut some).await.unwrap();
            }
        };

        let (written, ()) = tokio::join!(stream.write_all(&[0; 64]), reading);

        assert!(written.is_ok());
    }
}
