//! Ends a connection whose client does not take its answer.
//!
//! Without this a client that sends requests and never reads, or reads a little now and then, could
//! hold its connection and its answers for ever: hyper waits for the socket without a limit, and
//! all clients share the memory for answers.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};

/// Bytes that a client has to take within the limit, or the rest of its answer if that is less.
const PORTION: usize = 1024 * 1024;

/// A stream with a deadline for waiting writes: from the first write that has to wait, the client
/// has `limit` to take a portion.
pub(crate) struct Stall<S> {
    stream: S,
    limit: Duration,
    /// Starts with the first write that waits.
    patience: Pin<Box<Sleep>>,
    waiting: bool,
    /// Bytes the client took since then.
    taken: usize,
}

impl<S> Stall<S> {
    pub(crate) fn new(stream: S, limit: Duration) -> Self {
        Self { stream, limit, patience: Box::pin(tokio::time::sleep(limit)), waiting: false, taken: 0 }
    }

    /// A write, which may be one of many.
    fn written(&mut self, cx: &mut Context<'_>, progress: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if let Poll::Ready(Ok(bytes)) = progress {
            self.taken += bytes;
            // A whole portion: the next write that waits gets the full limit.
            self.waiting &= self.taken < PORTION;
        }
        self.bounded(cx, progress)
    }

    /// The end of an answer: everything before it was taken.
    fn finished(&mut self, cx: &mut Context<'_>, progress: Poll<io::Result<()>>) -> Poll<io::Result<()>> {
        self.waiting &= progress.is_pending();
        self.bounded(cx, progress)
    }

    fn bounded<T>(&mut self, cx: &mut Context<'_>, progress: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if progress.is_ready() {
            return progress;
        }
        if !self.waiting {
            self.waiting = true;
            self.taken = 0;
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
        self.written(cx, progress)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let progress = Pin::new(&mut self.stream).poll_write_vectored(cx, bufs);
        self.written(cx, progress)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let progress = Pin::new(&mut self.stream).poll_flush(cx);
        self.finished(cx, progress)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let progress = Pin::new(&mut self.stream).poll_shutdown(cx);
        self.finished(cx, progress)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

    const LIMIT: Duration = Duration::from_secs(5);

    /// Takes so many bytes every four seconds.
    async fn take(mut theirs: DuplexStream, bytes: usize) {
        let mut every = tokio::time::interval(Duration::from_secs(4));
        let mut some = vec![0; bytes];
        loop {
            every.tick().await;
            if theirs.read_exact(&mut some).await.is_err() {
                return;
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_write_that_nobody_takes_fails_after_the_limit() {
        let (ours, _theirs) = tokio::io::duplex(8);
        let mut stream = Stall::new(ours, LIMIT);
        let begun = Instant::now();

        let error = stream.write_all(&[0; 64]).await.unwrap_err();

        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert_eq!(begun.elapsed().as_secs(), 5);
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_reader_that_takes_its_portions_is_served() {
        let (ours, theirs) = tokio::io::duplex(PORTION);
        let mut stream = Stall::new(ours, LIMIT);
        let writing = async {
            let written = stream.write_all(&vec![0; 8 * PORTION]).await;
            drop(stream);
            written
        };

        let (written, ()) = tokio::join!(writing, take(theirs, PORTION));

        assert!(written.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn a_reader_that_takes_drips_is_not_waited_for() {
        let (ours, theirs) = tokio::io::duplex(8);
        let mut stream = Stall::new(ours, LIMIT);
        let begun = Instant::now();
        let writing = async {
            let written = stream.write_all(&[0; 64]).await;
            drop(stream);
            (written, begun.elapsed())
        };

        let ((written, took), ()) = tokio::join!(writing, take(theirs, 8));

        assert_eq!((written.unwrap_err().kind(), took.as_secs()), (io::ErrorKind::TimedOut, 5));
    }

    #[tokio::test(start_paused = true)]
    async fn each_answer_has_its_own_time() {
        let (ours, theirs) = tokio::io::duplex(8);
        let mut stream = Stall::new(ours, LIMIT);
        let writing = async {
            for _ in 0..5 {
                stream.write_all(&[0; 8]).await?;
                stream.flush().await?;
            }
            drop(stream);
            io::Result::Ok(())
        };

        let (written, ()) = tokio::join!(writing, take(theirs, 8));

        assert!(written.is_ok());
    }
}
