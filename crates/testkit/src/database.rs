//! A database for one test.

use std::hash::{BuildHasher, RandomState};
use std::sync::OnceLock;

use tokio::sync::OnceCell;
use tokio_postgres::{Client, NoTls};

use crate::fault_proxy::{FaultProxy, Upstream};
use crate::{cluster, leftovers, template};

/// A database that only one test uses. Dropped with the value; kept until the next run when the
/// test fails, so that it can be read.
#[derive(Debug)]
pub struct TestDatabase {
    name: String,
}

impl TestDatabase {
    /// A database with Reveille's schema in it.
    pub async fn new() -> Self {
        prepare().await;
        let template = template::migrated().await;
        Self::clone_of(&template).await
    }

    /// A database with nothing in it.
    pub async fn empty() -> Self {
        prepare().await;
        Self::clone_of("template0").await
    }

    async fn clone_of(template: &str) -> Self {
        let name = leftovers::name_for_this_process();
        // Copying files beats writing the template through the log when nothing is synced: 16 ms
        // against 34 ms.
        let create = format!("create database {name} template {template} strategy file_copy");
        admin().await.batch_execute(&create).await.expect("a database can be created");
        Self { name }
    }

    /// The name of the database.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A connection string (`key=value`) over the Unix socket.
    pub fn url(&self) -> String {
        cluster::shared().connection_string(&self.name)
    }

    /// A proxy in front of this database's server, and the connection string that goes through it.
    pub async fn proxied(&self) -> (FaultProxy, String) {
        let server = cluster::shared();
        let socket = server.socket_dir().join(format!(".s.PGSQL.{}", server.port()));
        let proxy = FaultProxy::start(Upstream::Unix(socket)).await;
        let url = format!("host=127.0.0.1 port={} user=postgres dbname={}", proxy.port(), self.name);
        (proxy, url)
    }

    /// A plain connection, for what a test reads or changes without the library.
    pub async fn client(&self) -> Client {
        connect(&self.url()).await
    }
}

impl Drop for TestDatabase {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the test's database is kept: psql \"{}\"", self.url());
            return;
        }
        let drop = format!("drop database if exists {} with (force)", self.name);
        // A test's runtime may be on its way out; this thread brings its own.
        let dropped = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(async { admin().await.batch_execute(&drop).await.map_err(std::io::Error::other) })
        });
        if let Ok(Err(error)) = dropped.join() {
            eprintln!("a test's database is left for the next run to clean up: {error}");
        }
    }
}

/// Starts the server and cleans up after dead runs, once per process.
async fn prepare() {
    static PREPARED: OnceCell<()> = OnceCell::const_new();
    let once = || async {
        tokio::task::spawn_blocking(cluster::shared).await.expect("the test server starts");
        leftovers::sweep(&admin().await).await;
    };
    PREPARED.get_or_init(once).await;
}

/// A connection to the server's own database.
pub(crate) async fn admin() -> Client {
    connect(&cluster::shared().connection_string("postgres")).await
}

/// A plain connection to anywhere, without TLS.
///
/// # Panics
/// When it is refused.
pub async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.expect("the server accepts a connection");
    #[expect(clippy::disallowed_methods, reason = "ends with its client; a test has no shutdown to wait for it")]
    tokio::spawn(async move {
        // A test often ends it on purpose; the client's next call shows the error.
        let _ = connection.await;
    });
    client
}

/// A random number, for names.
pub(crate) fn random() -> u32 {
    static STATE: OnceLock<RandomState> = OnceLock::new();
    static COUNT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    let nth = COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let hash = STATE.get_or_init(RandomState::new).hash_one(nth);
    u32::try_from(hash >> 32).unwrap_or(nth)
}
