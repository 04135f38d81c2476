//! What our pushes are measured beside: servers that run one statement for each request.
//!
//! First the plainest thing that could be called a queue over HTTP: a row in a table, in a
//! transaction of its own, durable before it is answered, and stored once for each transaction id,
//! as ours. It has no order, no groups and no wake-ups. It stands behind the HTTP library that we
//! use, without our limits and deadlines; and, as a second one, behind a bare reader of sockets
//! that understands nothing but this bench, which shows what HTTP itself costs. The third one does
//! what we do, with our own library, but each request has a statement of its own: it shows what
//! fusing requests is worth. A partition always goes to the same of its connections, so that none
//! waits for another's lock.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::serve::ListenerExt;
use bytes::Bytes;
use reveille::database::{Database, DatabaseOptions};
use reveille::messages::{Messages, MessagesOptions, PartitionName, Payload, Pop, PushItem, QueueName};
use reveille::uuid::Uuid;
use reveille_testkit::scenario::wire::{Incoming, Wire};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::net::TcpListener;
use tokio::process::Command;
use tokio::sync::{Mutex, mpsc};
use tokio::task::JoinSet;
use tokio_postgres::{Client, NoTls, Statement};

use crate::server::Serving;

/// The first argument that makes this program that server.
pub(crate) const CHILD: &str = "serve-one-statement-per-request";
/// A generous pool: commits that wait for the disk at the same time share one flush.
const CONNECTIONS: usize = 50;
pub(super) const ABOUT: &str = "200 clients with one message a request; `push_batch1_vs_single`: beside our own push with one statement \
                                for each request (50 connections, a partition always on the same); `push_batch1_vs_bare_insert`: \
                                beside a plain axum server that inserts one row in one transaction for each request (50 \
                                connections, a unique index on the transaction id), without order, groups or waking";

/// One of these servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ServerKind {
    Axum,
    Bare,
    /// Axum in front of our own pushes.
    Unfused,
}

impl ServerKind {
    const fn word(self) -> &'static str {
        match self {
            Self::Axum => "axum",
            Self::Bare => "bare",
            Self::Unfused => "unfused",
        }
    }
}

const TABLE: &str = "create table if not exists bench_single (
    id bigint generated always as identity primary key,
    queue text not null,
    partition text not null,
    transaction_id text not null,
    payload bytea not null,
    unique (queue, partition, transaction_id)
)";
const INSERT: &str = "insert into bench_single (queue, partition, transaction_id, payload) values ($1, $2, $3, $4)
    on conflict do nothing returning id";

pub(super) async fn make_table(admin: &Client) -> anyhow::Result<()> {
    Ok(admin.batch_execute(TABLE).await?)
}

pub(super) async fn start(url: &str, kind: ServerKind) -> anyhow::Result<Serving> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args([CHILD, url, kind.word()]);
    Serving::spawn(command).await
}

/// The child's side; ends when it is killed.
pub(crate) fn serve(url: &str, kind: &str) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut tasks = JoinSet::new();
        let store = if kind == ServerKind::Unfused.word() {
            Store::queue(url).await?
        } else {
            Store::table(url, &mut tasks).await?
        };
        let store = Arc::new(store);
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        println!("listening on http://{}", listener.local_addr()?);
        if kind != ServerKind::Bare.word() {
            let router = Router::new().route("/api/v1/push", post(push)).with_state(store);
            return Ok(axum::serve(listener.tap_io(|stream| drop(stream.set_nodelay(true))), router).await?);
        }
        loop {
            let (stream, _) = listener.accept().await?;
            tasks.spawn(answer(Wire::new(stream)?, Arc::clone(&store)));
        }
    })
}

#[derive(Deserialize)]
struct Body<'b> {
    #[serde(borrow)]
    items: Vec<Item<'b>>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Item<'b> {
    queue: &'b str,
    partition: &'b str,
    transaction_id: &'b str,
    #[serde(borrow)]
    payload: &'b RawValue,
}

async fn answer(mut wire: Wire, store: Arc<Store>) -> anyhow::Result<()> {
    while let Some(Incoming { body, .. }) = wire.next().await? {
        let answer = store.take(&body).await?;
        let response = format!(
            "HTTP/1.1 201 Created\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{answer}",
            answer.len()
        );
        wire.say(response.as_bytes()).await?;
    }
    Ok(())
}

async fn push(State(store): State<Arc<Store>>, body: Bytes) -> Result<Response, StatusCode> {
    let answer = store.take(&body).await.map_err(|_| StatusCode::INTERNAL_SERVER_ERROR)?;
    Ok((StatusCode::CREATED, [(CONTENT_TYPE, "application/json")], answer).into_response())
}

/// Where messages go.
enum Store {
    Table(Pool<(Client, Statement)>),
    /// Each has batchers and connections of its own and one request at a time, so that nothing is
    /// fused.
    Queue(Vec<Mutex<Messages>>),
}

impl Store {
    async fn table(url: &str, tasks: &mut JoinSet<anyhow::Result<()>>) -> anyhow::Result<Self> {
        let mut connections = Vec::new();
        for _ in 0..CONNECTIONS {
            let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
            tasks.spawn(async move { Ok(connection.await?) });
            let insert = client.prepare(INSERT).await?;
            connections.push((client, insert));
        }
        Ok(Self::Table(Pool::of(connections)))
    }

    async fn queue(url: &str) -> anyhow::Result<Self> {
        let database = Database::connect(DatabaseOptions::new(url)).await?;
        let options = || MessagesOptions::default().upkeep_interval(Duration::ZERO);
        Ok(Self::Queue((0..CONNECTIONS).map(|_| Mutex::new(Messages::new(&database, options()))).collect()))
    }

    /// Stores the messages of a body, one statement for each; the answer for the last.
    async fn take(&self, body: &[u8]) -> anyhow::Result<String> {
        let Body { items } = serde_json::from_slice(body)?;
        if let (Self::Queue(all), 2..) = (self, items.len()) {
            for one in all {
                warm_up(&*one.lock().await, &items).await?;
            }
        }
        let mut id = String::new();
        for item in &items {
            id = match self {
                Self::Table(pool) => insert_row(&*pool.lend().await?, item).await?,
                Self::Queue(all) => push_one(&*home(all, item).lock().await, item).await?,
            };
        }
        Ok(format!(r#"[{{"index":0,"status":"queued","message_id":"{id}"}}]"#))
    }
}

/// The one that all items of this partition go to.
fn home<'a>(all: &'a [Mutex<Messages>], item: &Item<'_>) -> &'a Mutex<Messages> {
    let mut hasher = DefaultHasher::new();
    (item.queue, item.partition).hash(&mut hasher);
    let place = usize::try_from(hasher.finish() % all.len() as u64).unwrap_or(0);
    &all[place]
}

/// Brings it to the state of a server that has run for a while: it knows the partitions by name,
/// and, because it has been popped from, its hints leave without a push that waits for them.
async fn warm_up(messages: &Messages, items: &[Item<'_>]) -> anyhow::Result<()> {
    for item in items {
        push_one(messages, &Item { transaction_id: &Uuid::now_v7().to_string(), ..*item }).await?;
    }
    if let Some(item) = items.first() {
        messages.pop(Pop::queue(QueueName::new(item.queue)?).auto_ack()).await?;
    }
    Ok(())
}

async fn insert_row((client, insert): &(Client, Statement), item: &Item<'_>) -> anyhow::Result<String> {
    let payload = item.payload.get().as_bytes();
    let row = client.query_one(insert, &[&item.queue, &item.partition, &item.transaction_id, &payload]).await?;
    Ok(row.get::<_, i64>(0).to_string())
}

async fn push_one(messages: &Messages, item: &Item<'_>) -> anyhow::Result<String> {
    let payload = Payload::new(item.payload.get().as_bytes().to_vec());
    let message = PushItem::new(QueueName::new(item.queue)?, payload)
        .partition(PartitionName::new(item.partition)?)
        .transaction_id(item.transaction_id);
    Ok(messages.push_one(message).await?.id.0.to_string())
}

/// Things that are used by one request at a time.
struct Pool<T> {
    idle: Mutex<mpsc::Receiver<T>>,
    back: mpsc::Sender<T>,
}

impl<T> Pool<T> {
    fn of(all: Vec<T>) -> Self {
        let (back, idle) = mpsc::channel(all.len().max(1));
        for one in all {
            // There is room for all of them.
            let _ = back.try_send(one);
        }
        Self { idle: Mutex::new(idle), back }
    }

    async fn lend(&self) -> anyhow::Result<Lent<'_, T>> {
        let one = self.idle.lock().await.recv().await.context("there is nothing left to work with")?;
        Ok(Lent { one: Some(one), back: &self.back })
    }
}

/// One of a pool, which has room for it when this is dropped.
struct Lent<'p, T> {
    one: Option<T>,
    back: &'p mpsc::Sender<T>,
}

impl<T> std::ops::Deref for Lent<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.one.as_ref().expect("it is there until the drop")
    }
}

impl<T> Drop for Lent<'_, T> {
    fn drop(&mut self) {
        if let Some(one) = self.one.take() {
            let _ = self.back.try_send(one);
        }
    }
}
