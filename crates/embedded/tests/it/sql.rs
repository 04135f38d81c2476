//! A client of the server, blocking, and one that inserts without pause.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::thread::JoinHandle;

use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;
use tokio_postgres::{Client, Error, NoTls, SimpleQueryMessage};

use crate::fault_harness::{UP_WITHIN, until};

pub(crate) struct Session {
    runtime: Runtime,
    client: Client,
    /// Dropped with the session, which closes the connection.
    _connection: JoinSet<()>,
}

impl Session {
    pub(crate) fn open(connection: &str) -> Result<Self, Error> {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let (client, driver) = runtime.block_on(tokio_postgres::connect(connection, NoTls))?;
        let mut tasks = JoinSet::new();
        tasks.spawn_on(async { drop(driver.await) }, runtime.handle());
        Ok(Self { runtime, client, _connection: tasks })
    }

    /// The first column of every row.
    pub(crate) fn ask(&self, sql: &str) -> Result<Vec<String>, Error> {
        let messages = self.runtime.block_on(self.client.simple_query(sql))?;
        let text = |message: SimpleQueryMessage| match message {
            SimpleQueryMessage::Row(row) => Some(row.get(0).unwrap_or_default().to_owned()),
            _ => None,
        };
        Ok(messages.into_iter().filter_map(text).collect())
    }

    pub(crate) fn do_it(&self, sql: &str) {
        self.ask(sql).unwrap();
    }

    pub(crate) fn one(&self, sql: &str) -> String {
        self.ask(sql).unwrap().remove(0)
    }
}

/// One question on a connection of its own.
#[track_caller]
pub(crate) fn ask(connection: &str, sql: &str) -> String {
    Session::open(connection).unwrap().one(sql)
}

/// Inserts one row after the other until the connection breaks.
pub(crate) struct Inserter {
    acknowledged: Arc<AtomicI64>,
    thread: JoinHandle<()>,
}

impl Inserter {
    pub(crate) fn start(connection: &str) -> Self {
        let session = Session::open(connection).unwrap();
        session.do_it("create table if not exists trial (n bigint)");
        let acknowledged = Arc::new(AtomicI64::new(0));
        let count = Arc::clone(&acknowledged);
        let thread = std::thread::spawn(move || {
            while session.ask("insert into trial values (1)").is_ok() {
                count.fetch_add(1, Ordering::SeqCst);
            }
        });
        Self { acknowledged, thread }
    }

    /// Waits until so many rows are committed.
    #[track_caller]
    pub(crate) fn until_acknowledged(&self, rows: i64) {
        until(UP_WITHIN, "committed rows", || self.acknowledged.load(Ordering::SeqCst) >= rows);
    }

    /// Waits for the end of the connection and returns how many rows were acknowledged.
    #[track_caller]
    pub(crate) fn broken_off(self) -> i64 {
        until(UP_WITHIN, "the end of the inserting connection", || self.thread.is_finished());
        self.thread.join().unwrap();
        self.acknowledged.load(Ordering::SeqCst)
    }
}

/// How many rows of inserters are there.
#[track_caller]
pub(crate) fn rows(connection: &str) -> i64 {
    ask(connection, "select count(*) from trial").parse().unwrap()
}
