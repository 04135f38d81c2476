//! A running server, and a client that sees every byte.

use std::net::SocketAddr;
use std::time::Duration;

use reveille::database::{Database, DatabaseOptions};
use reveille::messages::MessagesOptions;
use reveille_server::{ServerHandle, ServerOptions};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// Longer than anything here takes; a test that waits this long has failed.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) struct Running {
    pub(crate) handle: ServerHandle,
    pub(crate) shutdown: CancellationToken,
    pub(crate) database: Database,
    task: JoinSet<()>,
}

impl Running {
    pub(crate) async fn start(url: &str, choose: impl FnOnce(ServerOptions) -> ServerOptions) -> Self {
        let database = Database::connect(DatabaseOptions::new(url)).await.expect("the database is there");
        let options = choose(ServerOptions::default().listen(([127, 0, 0, 1], 0).into()));
        let (server, handle) =
            options.bind().await.expect("a port is free").serve(&database, MessagesOptions::default());
        let shutdown = CancellationToken::new();
        let mut task = JoinSet::new();
        task.spawn(server.run(shutdown.clone()));
        Self { handle, shutdown, database, task }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.handle.address()
    }

    pub(crate) async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address()).await.expect("the server listens")
    }

    pub(crate) async fn get(&self, path: &str) -> Reply {
        self.ask("GET", path).await
    }

    pub(crate) async fn ask(&self, method: &str, path: &str) -> Reply {
        let request = format!("{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
        let mut stream = self.connect().await;
        stream.write_all(request.as_bytes()).await.expect("the server takes a request");
        Reply::parse(&rest_of(&mut stream).await)
    }

    /// Waits until the server has ended by itself.
    pub(crate) async fn ended(&mut self) {
        timeout(PATIENCE, self.task.join_next()).await.expect("the server ends in time");
    }
}

/// Everything until the server closes the connection.
pub(crate) async fn rest_of(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    // A server that cuts a client off may reset the connection; the bytes before that count.
    let _ = timeout(PATIENCE, stream.read_to_end(&mut bytes)).await.expect("the server closes the connection in time");
    String::from_utf8(bytes).expect("the server speaks UTF-8")
}

#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Reply {
    pub(crate) fn parse(text: &str) -> Self {
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("not a reply: {text:?}"));
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a reply has a status");
        Self { status, head: head.to_ascii_lowercase(), body: body.to_owned() }
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).expect("the body is JSON")
    }
}
