//! Adds a JSON body to the refusals that hyper sends with an empty one.
//!
//! A request head that cannot be parsed never reaches a route: hyper answers it with a status and
//! no body, and has no hook to change that. This wrapper of the stream recognises such an answer by
//! its bytes and sends ours instead. No answer of our own is taken for one, because each of our
//! refusals has a body.
//!
//! After the preface of HTTP/2 the connection is closed without an answer: such a client could not
//! read one of HTTP/1.1.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Longer than any answer of hyper's own.
const EMPTY_ANSWER_MAX: usize = 256;
const EMPTY: &[u8] = b"\r\ncontent-length: 0\r\n";

/// The status line that hyper's answer begins with, and our answer in its place.
struct Fault {
    status: &'static str,
    code: &'static str,
    sentence: &'static str,
}

const FAULTS: [Fault; 3] = [
    Fault {
        status: "HTTP/1.1 400 Bad Request\r\n",
        code: "invalid_head",
        sentence: "this request head cannot be parsed as HTTP/1.1",
    },
    Fault {
        status: "HTTP/1.1 414 URI Too Long\r\n",
        code: "uri_too_long",
        sentence: "the address is longer than this server accepts",
    },
    Fault {
        status: "HTTP/1.1 431 Request Header Fields Too Large\r\n",
        code: "head_too_large",
        sentence: "the request head has more lines, or longer ones, than this server accepts",
    },
];

impl Fault {
    /// The fault these bytes report, if they are an answer of hyper's own.
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

/// A stream to a client that gets every refusal as JSON.
pub(crate) struct Explained<S> {
    stream: S,
    /// The unsent part of an answer that replaces hyper's.
    instead: Option<Vec<u8>>,
}

impl<S> Explained<S> {
    pub(crate) fn new(stream: S) -> Self {
        Self { stream, instead: None }
    }
}

impl<S: AsyncWrite + Unpin> Explained<S> {
    /// Sends `left` in place of `length` bytes of hyper's. Until all of it is sent, the writer
    /// comes back with the same bytes.
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
            [answer] => self.poll_write(cx, answer),
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

    const ANSWER_OF_HYPER: &[u8] =
        b"HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\ncontent-length: 0\r\n\
        date: Mon, 16 Nov 2026 10:20:30 GMT\r\n\r\n";

    async fn sent(written: &'static [u8], room: usize) -> String {
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
            let answer = sent(ANSWER_OF_HYPER, room).await;
            let (head, body) = answer.split_once("\r\n\r\n").unwrap();

            assert!(head.ends_with(&format!("content-length: {}", body.len())), "{answer}");
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
            assert_eq!(sent(answer, 16).await.as_bytes(), answer);
        }
    }
}
