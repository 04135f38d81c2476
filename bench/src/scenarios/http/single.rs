//! What our pushes are measured beside: a server that runs one statement for each request.
//!
//! The plainest thing that could be called a queue over HTTP: a row in a table, in a transaction of its own, durable before
//! it is answered, and stored once for each transaction id, as ours. It knows no order, no groups and no waking. It stands
//! behind the HTTP library that we use, without our limits and deadlines; and, as a second one, behind a bare reader of
//! sockets that understands nothing but this bench, which tells what HTTP itself costs.

use std::sync::Arc;

use anyhow::Context;
use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::serve::ListenerExt;
use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::net::TcpListener;
use tokio::process::Command;
use tokio::sync::{Mutex, mpsc};
use tokio::task::JoinSet;
use tokio_postgres::{Client, NoTls, Statement};

use crate::server::Serving;
use crate::wire::{Incoming, Wire};

/// The first argument that makes this program that server.
pub(crate) const CHILD: &str = "serve-one-statement-per-request";
/// A generous pool: commits that wait for the disk at the same time share one flush.
const CONNECTIONS: usize = 50;
pub(super) const ABOUT: &str = "`push_batch1_vs_single`: 200 clients, beside a plain axum server that inserts one row in one \
                                transaction for each request (50 connections, a unique index on the transaction id)";

/// How it speaks HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Door {
    Axum,
    Bare,
}

impl Door {
    const fn word(self) -> &'static str {
        match self {
            Self::Axum => "axum",
            Self::Bare => "bare",
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

pub(super) async fn start(url: &str, admin: &Client, door: Door) -> anyhow::Result<Serving> {
    admin.batch_execute(TABLE).await?;
    let mut command = Command::new(std::env::current_exe()?);
    command.args([CHILD, url, door.word()]);
    Serving::spawn(command).await
}

/// The child's side; ends when it is killed.
pub(crate) fn serve(url: &str, door: &str) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let (pool, mut tasks) = Pool::open(url).await?;
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        println!("listening on http://{}", listener.local_addr()?);
        if door == Door::Axum.word() {
            let router = Router::new().route("/api/v1/push", post(push)).with_state(pool);
            return Ok(axum::serve(listener.tap_io(|stream| drop(stream.set_nodelay(true))), router).await?);
        }
        loop {
            let (stream, _) = listener.accept().await?;
            tasks.spawn(answer(Wire::new(stream)?, Arc::clone(&pool)));
        }
    })
}

#[derive(Deserialize)]
struct Body<'b> {
    #[serde(borrow)]
    items: [Item<'b>; 1],
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Item<'b> {
    queue: &'b str,
    partition: &'b str,
    transaction_id: &'b str,
    #[serde(borrow)]
    payload: &'b RawValue,
}

async fn answer(mut wire: Wire, pool: Arc<Pool>) -> anyhow::Result<()> {
    while let Some(Incoming { body, .. }) = wire.next().await? {
        let told = pool.store(&body).await?;
        let head = format!(
            "HTTP/1.1 201 Created\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{told}",
            told.len()
        );
        wire.say(head.as_bytes()).await?;
    }
    Ok(())
}

async fn push(State(pool): State<Arc<Pool>>, body: Bytes) -> Result<Response, StatusCode> {
    let told = pool.store(&body).await.map_err(|_| StatusCode::INTERNAL_SERVER_ERROR)?;
    Ok((StatusCode::CREATED, [(CONTENT_TYPE, "application/json")], told).into_response())
}

/// Connections that are used by one request at a time.
struct Pool {
    idle: Mutex<mpsc::Receiver<(Client, Statement)>>,
    back: mpsc::Sender<(Client, Statement)>,
}

impl Pool {
    async fn open(url: &str) -> anyhow::Result<(Arc<Self>, JoinSet<anyhow::Result<()>>)> {
        let mut tasks = JoinSet::new();
        let (back, idle) = mpsc::channel(CONNECTIONS);
        for _ in 0..CONNECTIONS {
            let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
            tasks.spawn(async move { Ok(connection.await?) });
            let insert = client.prepare(INSERT).await?;
            back.send((client, insert)).await?;
        }
        Ok((Arc::new(Self { idle: Mutex::new(idle), back }), tasks))
    }

    /// Stores the one message of a body; the answer.
    async fn store(&self, body: &[u8]) -> anyhow::Result<String> {
        let Body { items: [item] } = serde_json::from_slice(body)?;
        let id = self.insert(&item).await?;
        Ok(format!(r#"[{{"index":0,"status":"queued","message_id":{id}}}]"#))
    }

    async fn insert(&self, item: &Item<'_>) -> anyhow::Result<i64> {
        let (client, insert) = self.idle.lock().await.recv().await.context("there are no connections")?;
        let payload = item.payload.get().as_bytes();
        let row = client.query_one(&insert, &[&item.queue, &item.partition, &item.transaction_id, &payload]).await;
        self.back.send((client, insert)).await?;
        Ok(row?.get(0))
    }
}
