//! The socket of one client, shared by hyper, which reads requests and writes answers, and by a pop
//! that waits for a message.
//!
//! hyper does not notice that a client has left while unread bytes follow its request: they may be
//! the next request. So a waiting pop reads ahead into a small buffer, from which hyper reads
//! later. Promises that a client's end is noticed whatever bytes precede it, that hyper reads each
//! byte once and in order, and that a client which is refused in the middle of a body receives the
//! answer.
//!
//! Next: [`crate::connection`] owns both halves, [`crate::http_service`] waits for a client's end.

use std::io;
use std::os::fd::AsRawFd;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use nix::sys::socket::{Shutdown, shutdown};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::time::timeout;

/// Bytes that are kept of what a client sends behind its waiting pop. The pop of a client that
/// sends more ends, because the client's end would lie behind bytes that nothing reads.
const AHEAD_MAX: usize = 16 * 1024;
/// Bytes of one read.
const PIECE: usize = 4096;

/// The socket as hyper uses it.
#[derive(Debug)]
pub(crate) struct Socket {
    reading: OwnedReadHalf,
    client: Client,
}

/// The client at the other end. Clones are the same one.
#[derive(Debug, Clone)]
pub(crate) struct Client(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    writing: OwnedWriteHalf,
    /// Bytes that were read behind a waiting pop.
    ahead: Mutex<Vec<u8>>,
    /// Whether bytes of the client stay unread, because it was refused.
    unread: AtomicBool,
}

/// The result of reading ahead.
enum Ahead {
    Nothing,
    End,
    TooMuch,
}

impl Client {
    pub(crate) fn new(stream: TcpStream) -> (Self, Socket) {
        let (reading, writing) = stream.into_split();
        let shared = Shared { writing, ahead: Mutex::default(), unread: AtomicBool::new(false) };
        let client = Self(Arc::new(shared));
        (client.clone(), Socket { reading, client })
    }

    /// Waits until the client has closed its connection, or only its sending side, which is the
    /// same from here; or until it has sent more than is kept for it.
    pub(crate) async fn left(&self) {
        while self.stream().readable().await.is_ok() {
            match self.read_ahead() {
                Ahead::Nothing => {}
                Ahead::End => return,
                Ahead::TooMuch => return self.leave_unread(),
            }
        }
    }

    fn read_ahead(&self) -> Ahead {
        let (mut ahead, mut piece) = (self.ahead(), [0; PIECE]);
        loop {
            match self.stream().try_read(&mut piece) {
                Ok(0) => return Ahead::End,
                Ok(read) => ahead.extend_from_slice(&piece[..read]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ahead::Nothing,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return Ahead::End,
            }
            if ahead.len() > AHEAD_MAX {
                return Ahead::TooMuch;
            }
        }
    }

    /// No route will read the rest of what the client sends: discard it before closing the socket.
    pub(crate) fn leave_unread(&self) {
        self.0.unread.store(true, Ordering::Relaxed);
    }

    /// Everything the client sent so far was read: a connection that goes on after a refusal is
    /// closed like any other.
    pub(crate) fn was_read(&self) {
        self.0.unread.store(false, Ordering::Relaxed);
    }

    /// Reads and drops what the client still sends after its answer, within bounds. Closing a
    /// socket with unread bytes resets the connection, and a client that sends before it reads
    /// would then see the reset and never its answer. Our sending side is closed first, so a client
    /// that sends another request sees that it gets no answer.
    pub(crate) async fn discard_rest(&self, time: Duration, most: usize) {
        if !self.0.unread.load(Ordering::Relaxed) {
            return;
        }
        let _ = shutdown(self.stream().as_raw_fd(), Shutdown::Write);
        let all = async {
            let mut discarded = 0;
            while discarded < most && self.stream().readable().await.is_ok() {
                match self.stream().try_read(&mut [0; 4 * PIECE]) {
                    Ok(0) => return,
                    Ok(read) => discarded += read,
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    Err(_) => return,
                }
            }
        };
        let _ = timeout(time, all).await;
    }

    fn stream(&self) -> &TcpStream {
        self.0.writing.as_ref()
    }

    fn ahead(&self) -> MutexGuard<'_, Vec<u8>> {
        self.0.ahead.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Write as soon as there is room.
    fn poll_write(
        &self,
        cx: &mut Context<'_>,
        write: impl Fn(&TcpStream) -> io::Result<usize>,
    ) -> Poll<io::Result<usize>> {
        loop {
            ready!(self.stream().poll_write_ready(cx))?;
            match write(self.stream()) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                done => return Poll::Ready(done),
            }
        }
    }
}

impl AsyncRead for Socket {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let mut ahead = self.client.ahead();
        if !ahead.is_empty() {
            let some = ahead.len().min(buf.remaining());
            buf.put_slice(&ahead[..some]);
            ahead.drain(..some);
            if ahead.is_empty() {
                *ahead = Vec::new();
            }
            return Poll::Ready(Ok(()));
        }
        drop(ahead);
        // Not through the client: this half knows without a system call that the socket has been
        // read empty.
        Pin::new(&mut self.reading).poll_read(cx, buf)
    }
}

impl AsyncWrite for Socket {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.client.poll_write(cx, |stream| stream.try_write(buf))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.client.poll_write(cx, |stream| stream.try_write_vectored(bufs))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(shutdown(self.client.stream().as_raw_fd(), Shutdown::Write).map_err(Into::into))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    async fn connected() -> (TcpStream, Client, Socket) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let theirs = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (client, socket) = Client::new(listener.accept().await.unwrap().0);
        (theirs, client, socket)
    }

    #[tokio::test]
    async fn what_was_read_ahead_is_read_once_and_in_its_order() {
        let (mut theirs, client, mut socket) = connected().await;
        theirs.write_all(b"one").await.unwrap();
        let mut some = [0; 3];
        socket.read_exact(&mut some).await.unwrap();
        theirs.write_all(b"two").await.unwrap();
        theirs.shutdown().await.unwrap();

        client.left().await;

        let mut rest = Vec::new();
        socket.read_to_end(&mut rest).await.unwrap();
        assert_eq!((&some, rest.as_slice()), (b"one", &b"two"[..]));
    }

    #[tokio::test]
    async fn more_than_is_kept_counts_as_leaving_and_is_discarded() {
        let (mut theirs, client, socket) = connected().await;
        let sending = async {
            theirs.write_all(&vec![1; 8 << 20]).await.unwrap();
            drop(theirs);
        };
        let discarding = async {
            client.left().await;
            client.discard_rest(Duration::from_secs(20), usize::MAX).await;
        };

        tokio::join!(sending, discarding);

        assert!(client.ahead().len() <= AHEAD_MAX + PIECE);
        drop(socket);
    }
}
