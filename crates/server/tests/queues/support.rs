//! A running server, and a plain HTTP client.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::time::Duration;

use reveille::database::{Database, DatabaseOptions};
use reveille::messages::MessagesOptions;
use reveille_server::{ServerHandle, ServerOptions};
use reveille_testkit::TestDatabase;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// Longer than anything here takes; a test that waits this long has failed.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// A server of its own database.
pub(crate) struct TestServer {
    pub(crate) db: TestDatabase,
    pub(crate) node: Node,
}

impl TestServer {
    pub(crate) async fn new() -> Self {
        Self::with(|options| options).await
    }

    pub(crate) async fn with(choose: impl FnOnce(ServerOptions) -> ServerOptions) -> Self {
        let db = TestDatabase::new().await;
        let node = Node::start(&db.url(), choose, MessagesOptions::default()).await;
        Self { db, node }
    }

    /// Waits until so many statements wait for a lock.
    pub(crate) async fn until_blocked(&self, count: i64) {
        let watcher = self.db.client().await;
        let blocked =
            "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()";
        let all = async {
            while watcher.query_one(blocked, &[]).await.expect("the query works").get::<_, i64>(0) < count {
                tokio::task::yield_now().await;
            }
        };
        timeout(PATIENCE, all).await.expect("the statements reach the lock");
    }
}

impl std::ops::Deref for TestServer {
    type Target = Node;

    fn deref(&self) -> &Node {
        &self.node
    }
}

/// A server.
pub(crate) struct Node {
    pub(crate) handle: ServerHandle,
    pub(crate) shutdown: CancellationToken,
    task: JoinSet<()>,
}

impl Node {
    pub(crate) async fn start(
        url: &str,
        choose: impl FnOnce(ServerOptions) -> ServerOptions,
        messages: MessagesOptions,
    ) -> Self {
        let database = Database::connect(DatabaseOptions::new(url)).await.expect("the database is there");
        let options = choose(ServerOptions::default().listen(([127, 0, 0, 1], 0).into()));
        let (server, handle) = options.bind().await.expect("a port is free").serve(&database, messages);
        let shutdown = CancellationToken::new();
        let mut task = JoinSet::new();
        task.spawn(server.run(shutdown.clone()));
        Self { handle, shutdown, task }
    }

    pub(crate) fn client(&self) -> Client {
        Client { address: self.handle.address() }
    }

    pub(crate) async fn get(&self, path: &str) -> Reply {
        self.client().ask("GET", path, None).await
    }

    pub(crate) async fn post(&self, path: &str, body: impl AsRef<str>) -> Reply {
        self.client().ask("POST", path, Some(body.as_ref())).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Reply {
        self.client().ask("DELETE", path, None).await
    }

    /// Pushes one payload to a queue.
    pub(crate) async fn push(&self, queue: &str, payload: &str) -> Value {
        let reply =
            self.post("/api/v1/push", format!(r#"{{"items":[{{"queue":"{queue}","payload":{payload}}}]}}"#)).await;
        assert_eq!(reply.status, 201, "{}", reply.body);
        reply.json()[0].clone()
    }

    /// Waits until so many pops wait in the library.
    pub(crate) async fn until_waiting(&self, count: usize) {
        let all = async {
            while self.handle.messages().figures().waiting != count {
                tokio::task::yield_now().await;
            }
        };
        let found = timeout(PATIENCE, all).await;
        assert!(found.is_ok(), "{} wait", self.handle.messages().figures().waiting);
    }

    /// Waits until the server has ended by itself.
    pub(crate) async fn ended(&mut self) {
        timeout(PATIENCE, self.task.join_next()).await.expect("the server ends in time");
    }
}

/// A client that uses a new connection for each request.
#[derive(Clone)]
pub(crate) struct Client {
    address: SocketAddr,
}

/// A request whose reply may come later.
pub(crate) struct PendingReply {
    task: JoinSet<Reply>,
    abort: AbortHandle,
}

impl Client {
    pub(crate) async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.expect("the server listens")
    }

    pub(crate) async fn ask(&self, method: &str, path: &str, body: Option<&str>) -> Reply {
        let mut stream = self.connect().await;
        stream.write_all(&request(method, path, body)).await.expect("the server takes a request");
        reply(&mut stream).await
    }

    /// Sends exactly these bytes and reads the reply until the connection ends.
    pub(crate) async fn say(&self, bytes: impl AsRef<[u8]>) -> Reply {
        let mut stream = self.connect().await;
        stream.write_all(bytes.as_ref()).await.expect("the server takes a request");
        reply(&mut stream).await
    }

    pub(crate) fn spawn(&self, path: &str) -> PendingReply {
        let (client, path) = (self.clone(), path.to_owned());
        let mut task = JoinSet::new();
        let abort = task.spawn(async move { client.ask("GET", &path, None).await });
        PendingReply { task, abort }
    }
}

impl PendingReply {
    pub(crate) async fn reply(&mut self) -> Reply {
        timeout(PATIENCE, self.task.join_next())
            .await
            .expect("an answer in time")
            .expect("a request")
            .expect("answered")
    }

    /// The client leaves: its connection is closed.
    pub(crate) fn leave(self) {
        self.abort.abort();
    }
}

pub(crate) fn request(method: &str, path: &str, body: Option<&str>) -> Vec<u8> {
    let mut text = format!("{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n");
    if let Some(body) = body {
        let _ = write!(text, "content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    } else {
        text.push_str("\r\n");
    }
    text.into_bytes()
}

/// Everything until the server closes the connection.
pub(crate) async fn reply(stream: &mut TcpStream) -> Reply {
    let mut bytes = Vec::new();
    let _ = timeout(PATIENCE, stream.read_to_end(&mut bytes)).await.expect("the server closes the connection in time");
    Reply::parse(&String::from_utf8(bytes).expect("the server speaks UTF-8"))
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

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }

    pub(crate) fn code(&self) -> String {
        self.json()["code"].as_str().unwrap_or_default().to_owned()
    }

    /// The payloads of a pop.
    pub(crate) fn data(&self) -> Vec<Value> {
        self.messages().iter().map(|message| message["data"].clone()).collect()
    }

    pub(crate) fn messages(&self) -> Vec<Value> {
        assert_eq!(self.status, 200, "{}", self.body);
        self.json()["messages"].as_array().expect("messages").clone()
    }

    pub(crate) fn assert_nothing(&self) {
        assert_eq!((self.status, self.body.as_str()), (204, ""));
        assert!(!self.head.contains("content-length") && !self.head.contains("content-type"), "{}", self.head);
    }
}

/// The ack of a message, as clients send it.
pub(crate) fn ack(message: &Value, status: &str) -> String {
    format!(
        r#"{{"transactionId":{},"partitionId":{},"leaseId":{},"status":"{status}","error":null,"consumerGroup":null}}"#,
        message["transactionId"], message["partitionId"], message["leaseId"]
    )
}
