//! A hundred callers with one row each: a statement for each caller, or one statement for all that
//! wait.

use std::time::Duration;

use reveille::database::{Connection, Statement};
use tokio::sync::{Mutex, mpsc, oneshot};
use tokio_postgres::types::Type;

use super::INSERT;
use crate::measure::rate;

const CALLERS: usize = 100;

static INSERT_MANY: Statement = Statement {
    name: "bench/insert_many",
    sql: "-- The rows of all callers that wait, one commit.\ninsert into public.bench_ground (body) select unnest($1)",
    types: &[Type::INT8_ARRAY],
};

/// A caller's row, and the channel that reports its commit.
type Request = (i64, oneshot::Sender<()>);

/// Callers share the connections, each with a statement of its own.
pub(super) async fn separate(span: Duration, connections: &[Connection]) -> anyhow::Result<f64> {
    let insert = async |caller: usize| {
        connections[caller % connections.len()].execute(&INSERT, &[&1_i64]).await.map(drop).map_err(Into::into)
    };
    rate(span, CALLERS, insert).await
}

/// What arrives while a statement is in flight forms the next one: no timer, no added delay.
pub(super) async fn fused(span: Duration, connections: &[Connection]) -> anyhow::Result<f64> {
    let (sender, requests) = mpsc::channel::<Request>(CALLERS);
    let requests = Mutex::new(requests);
    let flushes = futures_util::future::try_join_all(connections.iter().map(|connection| flush(connection, &requests)));
    let callers = async {
        let insert = async |_| {
            let (reply, answer) = oneshot::channel();
            sender.send((1, reply)).await?;
            answer.await.map_err(anyhow::Error::from)
        };
        rate(span, CALLERS, insert).await
    };
    tokio::select! {
        rate = callers => rate,
        ended = flushes => Err(ended.err().unwrap_or_else(|| anyhow::anyhow!("the flushes ended early"))),
    }
}

async fn flush(connection: &Connection, requests: &Mutex<mpsc::Receiver<Request>>) -> anyhow::Result<()> {
    let mut batch = Vec::with_capacity(CALLERS);
    loop {
        if requests.lock().await.recv_many(&mut batch, CALLERS).await == 0 {
            return Ok(());
        }
        let rows: Vec<i64> = batch.iter().map(|(row, _)| *row).collect();
        connection.execute(&INSERT_MANY, &[&rows]).await?;
        for (_, reply) in batch.drain(..) {
            let _ = reply.send(());
        }
    }
}
