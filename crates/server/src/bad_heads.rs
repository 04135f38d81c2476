//! Says as JSON what hyper says with an empty body.
//!
//! A head that cannot be parsed never reaches a route: hyper answers it by itself, with a status
//! and no body, and lets nobody have a word in it. This wrapper of the stream knows that answer by
//! its bytes and sends ours instead. None of our own answers can be taken for one: each that
//! refuses has a body.
//!
//! The preface of HTTP/2 is not answered but closed: whoever sends it could not read an answer of
//! HTTP/1.1.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Longer than any answer of hyper's own.
const EMPTY_ANSWER_MAX: usize = 256;
const EMPTY: &[u8] = b"\r\ncontent-length: 0\r\n";

/// The status line that hyper begins with, and what a client is told in its place.
struct Fault {
    status: &'static str,
    code: &'static str,
    sentence: &'static str,
}

const FAULTS: [Fault; 3] = [
    Fault {
        status: "HTTP/1.1 400 Bad Request\r\n",
        code: "invalid_head",
        sentence: "the head of this request cannot be read as HTTP/1.1",
    },
    Fault {
        status: "HTTP/1.1 414 URI Too Long\r\n",
        code: "uri_too_long",
        sentence: "the address is longer than this server accepts",
    },
    Fault {
        status: "HTTP/1.1 431 Request Header Fields Too Large\r\n",
        code: "head_too_large",
        sentence: "the head has more lines, or longer ones, than this server accepts",
    },
];

impl Fault {
    /// The one that these bytes tell of, if they are hyper's own.
    fn of(bytes: &[u8]) -> Option<&'static Self> {
        if bytes.len() > EMPTY_ANSWER_MAX {
            return None;
        }
        let fault = FAULTS.iter().find(|fault| bytes.starts_with(fault.status.as_bytes()))?;
        let is_empty = bytes.windows(EMPTY.len()).any(|part| part == EMPTY);
        (is_empty && bytes.ends_with(b"\r\n\r\n")).then_some(fault)
    }

    fn spelt(&self) -> Vec<u8> {
        let Self { status, code, sentence } = self;
        let body = format!(r#"{{"error":"{sentence}","code":"{code}"}}"#);
        let length = body.len();
        format!("{status}content-type: application/json\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}")
            .into_bytes()
    }
}

/// A stream to a client that hears of every fault in JSON.
pub(crate) struct Explained<S> {
    stream: S,
    /// What is left of an answer that is sent in place of hyper's.
    instead: Option<Vec<u8>>,
}

impl<S> Explained<S> {
    pub(crate) fn new(stream: S) -> Self {
        Self { stream, instead: None }
    }
}

impl<S: AsyncWrite + Unpin> Explained<S> {
    /// Sends what was put in the place of `length` bytes. They are written once all of it is; until
    /// then their writer comes back with the same ones.
    fn poll_instead(&mut self, cx: &mut Context<'_>, mut left: Vec<u8>, length: usize) -> Poll<io::Result<usize>> {
        while !left.is_empty() {
            match Pin::new(&mut self.stream).poll_write(cx, &left) {
                Poll::Ready(written) => drop(left.drain(..written?)),
                Poll::Pending => {
                    self.instead = Some(left);
                    return Poll::Pending;
                }
            }
        }
        Poll::Ready(Ok(length))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Explained<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Explained<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let instead = self.instead.take().or_else(|| Fault::of(buf).map(Fault::spelt));
        match instead {
            Some(left) => self.poll_instead(cx, left, buf.len()),
            None => Pin::new(&mut self.stream).poll_write(cx, buf),
        }
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match bufs {
            // An answer without a body is one piece.
            [head] => self.poll_write(cx, head),
            _ => Pin::new(&mut self.stream).poll_write_vectored(cx, bufs),
        }
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    const HYPERS: &[u8] = b"HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\ncontent-length: 0\r\n\
        date: Mon, 16 Nov 2026 10:20:30 GMT\r\n\r\n";

    async fn told(written: &'static [u8], room: usize) -> String {
        let (ours, mut theirs) = tokio::io::duplex(room);
        let mut stream = Explained::new(ours);
        let writing = async move {
            stream.write_all(written).await.unwrap();
            stream.shutdown().await.unwrap();
        };
        let mut read = String::new();
        let ((), read_all) = tokio::join!(writing, theirs.read_to_string(&mut read));
        read_all.unwrap();
        read
    }

    #[tokio::test]
    async fn an_empty_answer_is_explained_however_slowly_it_is_taken() {
        for room in [1, 7, 4096] {
            let said = told(HYPERS, room).await;
            let (head, body) = said.split_once("\r\n\r\n").unwrap();

            assert!(head.ends_with(&format!("content-length: {}", body.len())), "{said}");
            assert_eq!(serde_json::from_str::<serde_json::Value>(body).unwrap()["code"], "head_too_large");
        }
    }

    #[tokio::test]
    async fn every_other_answer_is_left_alone() {
        for answer in [
            &b"HTTP/1.1 400 Bad Request\r\ncontent-length: 2\r\n\r\n{}"[..],
            b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n",
            b"HTTP/1.1 204 No Content\r\n\r\n",
            b"",
        ] {
            assert_eq!(told(answer, 16).await.as_bytes(), answer);
        }
    }
}
