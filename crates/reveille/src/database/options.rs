//! What a caller chooses about a database.
//!
//! [`DatabaseOptions`] holds what was set; `DatabaseOptions::settings` turns it into values that
//! are known to be valid, or into one error that names every fault. Reads no environment and no
//! file.
//!
//! Next: [`super::Database::connect`].

use std::fmt;
use std::time::Duration;

use super::address::Address;
use super::connector::Purpose;
use super::schema_name::SchemaName;

/// Longer than any pause of a healthy server, short enough for a human who waits.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const STATEMENT_TIMEOUT: Duration = Duration::from_secs(30);
const LOCK_TIMEOUT: Duration = Duration::from_secs(10);
const POOL_SIZE: usize = 4;
/// The pool keeps a place for each; beyond this PostgreSQL's own limit is the one that counts.
const LARGEST_POOL: usize = 10_000;
/// The whole idle load of a process is one statement in this time.
const HEARTBEAT: Duration = Duration::from_secs(12);
const SHORTEST_HEARTBEAT: Duration = Duration::from_millis(50);
/// PostgreSQL counts milliseconds in an `int4`.
const LONGEST: Duration = Duration::from_millis(i32::MAX as u64);

/// How statements travel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum StatementMode {
    /// Named prepared statements and session settings: the fastest, on a session of our own.
    #[default]
    Direct,
    /// Unnamed statements in one round trip, settings local to their transaction: safe behind a
    /// transaction pooler.
    Pooled,
}

/// Where the database is and how to use it.
#[derive(Clone)]
pub struct DatabaseOptions {
    url: String,
    listen_url: Option<String>,
    schema: String,
    mode: StatementMode,
    statement_timeout: Duration,
    lock_timeout: Duration,
    connect_timeout: Option<Duration>,
    pool_size: usize,
    application_name: Option<String>,
    heartbeat: Duration,
}

impl DatabaseOptions {
    /// A database by its URL, as `postgres://user@host/database` or `host=/run/postgresql dbname=shop`.
    ///
    /// As with libpq, `sslmode` and `sslrootcert` choose TLS; without `sslmode` a connection that
    /// leaves the machine is verified in full. Several hosts are tried in order until one accepts
    /// writes.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            listen_url: None,
            schema: SchemaName::default().as_str().to_owned(),
            mode: StatementMode::default(),
            statement_timeout: STATEMENT_TIMEOUT,
            lock_timeout: LOCK_TIMEOUT,
            connect_timeout: None,
            pool_size: POOL_SIZE,
            application_name: None,
            heartbeat: HEARTBEAT,
        }
    }

    /// Another URL of the same database for LISTEN, for when `url` leads to a transaction pooler,
    /// which swallows it.
    ///
    /// Default: the same URL.
    #[must_use]
    pub fn listen_url(mut self, url: impl Into<String>) -> Self {
        self.listen_url = Some(url.into());
        self
    }

    /// The schema that holds everything we make, as the catalog spells it; any legal identifier.
    ///
    /// Default: `reveille`. 1 to 63 bytes.
    #[must_use]
    pub fn schema(mut self, name: impl Into<String>) -> Self {
        self.schema = name.into();
        self
    }

    /// How statements travel; choose [`StatementMode::Pooled`] behind a transaction pooler.
    ///
    /// Default: [`StatementMode::Direct`].
    #[must_use]
    pub fn statement_mode(mut self, mode: StatementMode) -> Self {
        self.mode = mode;
        self
    }

    /// How long the server may work on one of our statements. We wait five seconds longer before
    /// giving up on it.
    ///
    /// Default: 30 s. Unit: whole milliseconds, rounded up. Zero: no limit, neither there nor here.
    #[must_use]
    pub fn statement_timeout(mut self, limit: Duration) -> Self {
        self.statement_timeout = limit;
        self
    }

    /// How long one of our statements may wait for a lock.
    ///
    /// Default: 10 s. Unit: whole milliseconds, rounded up. Zero: no limit but the statement's.
    #[must_use]
    pub fn lock_timeout(mut self, limit: Duration) -> Self {
        self.lock_timeout = limit;
        self
    }

    /// How long it may take to open a connection, from the first packet to the end of the login,
    /// and how long a caller waits for a free one.
    ///
    /// Default: the URL's `connect_timeout`, else 10 s; for each host. Zero is refused: it would
    /// wait for ever.
    #[must_use]
    pub fn connect_timeout(mut self, limit: Duration) -> Self {
        self.connect_timeout = Some(limit);
        self
    }

    /// How many connections callers and administration share; administration gets half of them at
    /// most. Batchers, the listener and the probe have their own.
    ///
    /// Default: 4 connections. Zero is refused, and so is more than ten thousand.
    #[must_use]
    pub fn pool_size(mut self, connections: usize) -> Self {
        self.pool_size = connections;
        self
    }

    /// How many connections a database with these options opens at most for itself: the shared
    /// ones, and one each for notifications, for hints to other nodes, and for
    /// [`ping`](super::Database::ping). Those of messages
    /// ([`Messages::CONNECTIONS`](crate::messages::Messages::CONNECTIONS)) come on top; so does one
    /// for a moment, while the schema is migrated or an interrupted commit is asked about.
    pub fn connections_max(&self) -> usize {
        self.pool_size.saturating_add(Purpose::OWN.len())
    }

    /// What `pg_stat_activity` shows for our connections, followed by each one's purpose. Not sent
    /// in pooled mode.
    ///
    /// Default: the URL's `application_name`, else `reveille`. At most 40 bytes.
    #[must_use]
    pub fn application_name(mut self, name: impl Into<String>) -> Self {
        self.application_name = Some(name.into());
        self
    }

    /// How often a process that waits for work reports that it is alive, proves its link, and reads
    /// which work is due. Work that was not announced is found this much later at most; a stalled
    /// link, two seconds after that.
    ///
    /// Default: 12 s. Shorter than 50 ms is refused. All nodes of a schema should have the same.
    #[must_use]
    pub fn heartbeat(mut self, interval: Duration) -> Self {
        self.heartbeat = interval;
        self
    }

    /// Check every option, without connecting.
    pub fn check(&self) -> Result<(), OptionsError> {
        self.settings().map(drop)
    }

    pub(crate) fn settings(&self) -> Result<Settings, OptionsError> {
        let mut faults = Faults::default();
        let address = faults.note("", Address::parse(&self.url));
        let listen = self.listen_url.as_ref();
        let listen = listen.and_then(|url| faults.note("the URL for LISTEN: ", Address::parse(url)));
        let schema = faults.note("", self.schema.parse::<SchemaName>().map_err(|fault| vec![fault.to_string()]));
        let url_says = address.as_ref().and_then(|address| address.connect_timeout);
        let connect_timeout = self.connect_timeout.or(url_says).unwrap_or(CONNECT_TIMEOUT);
        faults.unless(!connect_timeout.is_zero(), "a connect timeout of zero would wait for ever");
        faults.unless(self.statement_timeout <= LONGEST, "the statement timeout may be 24 days at most");
        faults.unless(self.lock_timeout <= LONGEST, "the lock timeout may be 24 days at most");
        faults.unless(self.pool_size > 0, "a pool of zero connections would wait for ever");
        faults.unless(self.pool_size <= LARGEST_POOL, "the pool may have 10000 connections at most");
        faults.unless(self.heartbeat >= SHORTEST_HEARTBEAT, "the heartbeat may not be shorter than 50 ms");
        let application_name = self.application_name.clone();
        let application_name = application_name
            .or_else(|| address.as_ref().and_then(|address| address.application_name.clone()))
            .unwrap_or_else(|| "reveille".to_owned());
        faults.unless(application_name.len() <= 40, "the application name may have 40 bytes at most");
        faults.unless(!application_name.contains('\0'), "the application name may not contain the NUL character");
        match (address, schema) {
            (Some(address), Some(schema)) if faults.list.is_empty() => Ok(Settings {
                address,
                listen,
                schema,
                mode: self.mode,
                statement_timeout: self.statement_timeout,
                lock_timeout: self.lock_timeout,
                connect_timeout,
                pool_size: self.pool_size,
                application_name,
                heartbeat: self.heartbeat,
            }),
            _ => Err(OptionsError { faults: faults.list }),
        }
    }
}

impl fmt::Debug for DatabaseOptions {
    /// Without the URLs, which hold passwords.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DatabaseOptions")
            .field("schema", &self.schema)
            .field("mode", &self.mode)
            .field("statement_timeout", &self.statement_timeout)
            .field("lock_timeout", &self.lock_timeout)
            .field("connect_timeout", &self.connect_timeout)
            .field("pool_size", &self.pool_size)
            .field("application_name", &self.application_name)
            .finish_non_exhaustive()
    }
}

/// Options that were checked.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub(crate) address: Address,
    pub(crate) listen: Option<Address>,
    pub(crate) schema: SchemaName,
    pub(crate) mode: StatementMode,
    pub(crate) statement_timeout: Duration,
    pub(crate) lock_timeout: Duration,
    pub(crate) connect_timeout: Duration,
    pub(crate) pool_size: usize,
    pub(crate) application_name: String,
    pub(crate) heartbeat: Duration,
}

/// Everything that is wrong with some [`DatabaseOptions`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the database options cannot be used: {}", .faults.join("; "))]
pub struct OptionsError {
    faults: Vec<String>,
}

impl OptionsError {
    /// Each fault in a sentence of its own.
    pub fn faults(&self) -> &[String] {
        &self.faults
    }
}

#[derive(Default)]
struct Faults {
    list: Vec<String>,
}

impl Faults {
    fn note<T>(&mut self, whose: &str, result: Result<T, Vec<String>>) -> Option<T> {
        result.map_err(|faults| self.list.extend(faults.iter().map(|fault| format!("{whose}{fault}")))).ok()
    }

    fn unless(&mut self, holds: bool, fault: &str) {
        if !holds {
            self.list.push(fault.to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fault_is_reported_at_once() {
        let error = DatabaseOptions::new("user=me")
            .listen_url("mysql://x")
            .schema("pg_x")
            .pool_size(0)
            .connect_timeout(Duration::ZERO)
            .statement_timeout(Duration::from_secs(3_000_000))
            .application_name("x".repeat(41))
            .check()
            .unwrap_err();

        assert_eq!(error.faults().len(), 7, "{error}");
    }

    #[test]
    fn a_pool_that_no_server_could_serve_is_refused() {
        for connections in [10_001, usize::MAX] {
            let error = DatabaseOptions::new("host=/tmp").pool_size(connections).check().unwrap_err();
            assert_eq!(error.faults(), ["the pool may have 10000 connections at most"]);
        }
    }

    #[test]
    fn a_setter_beats_the_url_and_the_url_beats_the_default() {
        let url = "host=/tmp user=me connect_timeout=3 application_name=shop";
        let by_url = DatabaseOptions::new(url).settings().unwrap();
        let by_setter = DatabaseOptions::new(url).connect_timeout(Duration::from_secs(1)).settings().unwrap();

        assert_eq!(by_url.connect_timeout, Duration::from_secs(3));
        assert_eq!(by_url.application_name, "shop");
        assert_eq!(by_setter.connect_timeout, Duration::from_secs(1));
    }

    #[test]
    fn the_password_is_not_shown() {
        let options = DatabaseOptions::new("postgres://me:hush@db/shop");

        assert!(!format!("{options:?}").contains("hush"));
    }
}
