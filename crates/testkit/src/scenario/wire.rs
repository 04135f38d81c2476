//! Just enough HTTP/1.1 to load a server without the load being the measurement.
//!
//! One connection that is kept open, one request at a time, bodies with a length. Anything else
//! from a server (chunks, a connection that ends) is an error, so that it cannot be mistaken for an
//! answer.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, bail};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Longer than any request here may take, a long poll included.
const PATIENCE: Duration = Duration::from_secs(60);
const HEADERS_MAX: usize = 16 * 1024;

/// One side of a connection.
#[derive(Debug)]
pub struct Wire {
    stream: TcpStream,
    buffer: Vec<u8>,
}

/// What a server answered.
#[derive(Debug)]
pub struct Reply {
    /// Its status.
    pub status: u16,
    /// Its body.
    pub body: Vec<u8>,
}

/// What came in: the first line, and the body.
#[derive(Debug)]
pub struct Incoming {
    /// The line of a request or of a status.
    pub first_line: String,
    /// What follows the headers.
    pub body: Vec<u8>,
}

impl Wire {
    /// A new connection to a server.
    pub async fn connect(address: SocketAddr) -> anyhow::Result<Self> {
        Self::new(TcpStream::connect(address).await.context("the server does not take connections")?)
    }

    /// A connection that exists.
    pub fn new(stream: TcpStream) -> anyhow::Result<Self> {
        stream.set_nodelay(true)?;
        Ok(Self { stream, buffer: Vec::new() })
    }

    /// Asks for a page.
    pub async fn get(&mut self, path: &str) -> anyhow::Result<Reply> {
        self.ask(format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n").into_bytes()).await
    }

    /// Sends a body of JSON.
    pub async fn post(&mut self, path: &str, body: &str) -> anyhow::Result<Reply> {
        let length = body.len();
        let headers = format!(
            "POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n"
        );
        self.ask([headers.as_bytes(), body.as_bytes()].concat()).await
    }

    async fn ask(&mut self, request: Vec<u8>) -> anyhow::Result<Reply> {
        self.stream.write_all(&request).await?;
        let answer = timeout(PATIENCE, self.next()).await.context("no answer in time")??;
        let Incoming { first_line, body } = answer.context("the server hung up")?;
        let status = first_line.split(' ').nth(1).and_then(|status| status.parse().ok());
        Ok(Reply { status: status.with_context(|| format!("no status in {first_line:?}"))?, body })
    }

    /// Sends bytes as they are.
    pub async fn say(&mut self, bytes: &[u8]) -> anyhow::Result<()> {
        Ok(self.stream.write_all(bytes).await?)
    }

    /// The next message of the other side; `None` when it has left.
    pub async fn next(&mut self) -> anyhow::Result<Option<Incoming>> {
        let headers_end = loop {
            if let Some(at) = self.buffer.windows(4).position(|four| four == b"\r\n\r\n") {
                break at + 4;
            }
            anyhow::ensure!(self.buffer.len() < HEADERS_MAX, "headers without end");
            if self.stream.read_buf(&mut self.buffer).await? == 0 {
                return Ok(None);
            }
        };
        let (first_line, length) = read_headers(&self.buffer[..headers_end])?;
        while self.buffer.len() < headers_end + length {
            if self.stream.read_buf(&mut self.buffer).await? == 0 {
                bail!("the connection ended within a body");
            }
        }
        let body = self.buffer[headers_end..headers_end + length].to_vec();
        self.buffer.drain(..headers_end + length);
        Ok(Some(Incoming { first_line, body }))
    }
}

/// The first line and the length of the body.
fn read_headers(bytes: &[u8]) -> anyhow::Result<(String, usize)> {
    let text = std::str::from_utf8(bytes).context("headers that are no text")?;
    let mut lines = text.split("\r\n");
    let first_line = lines.next().unwrap_or_default().to_owned();
    let mut length = 0;
    for (name, value) in lines.filter_map(|line| line.split_once(':')) {
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse().context("a length that is no number")?;
        }
        anyhow::ensure!(!name.eq_ignore_ascii_case("transfer-encoding"), "a body in chunks");
    }
    Ok((first_line, length))
}

impl Reply {
    /// The body, if the status is the one that was hoped for.
    pub fn expect(self, status: u16) -> anyhow::Result<Vec<u8>> {
        anyhow::ensure!(self.status == status, "{} {}", self.status, String::from_utf8_lossy(&self.body));
        Ok(self.body)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_hold_the_first_line_and_the_length_of_the_body() {
        let answer = read_headers(b"HTTP/1.1 201 Created\r\nContent-Length: 12\r\n\r\n").unwrap();
        assert_eq!(answer, ("HTTP/1.1 201 Created".to_owned(), 12));

        assert_eq!(read_headers(b"HTTP/1.1 204 No Content\r\ndate: x\r\n\r\n").unwrap().1, 0);
        assert!(read_headers(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n").is_err());
    }
}
