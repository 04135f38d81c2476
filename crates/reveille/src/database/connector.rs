//! Opens connections to PostgreSQL, one host after the other.
//!
//! Promises that an opened session accepts writes, runs on a PostgreSQL we support, and has its
//! settings; that opening ends within the connect timeout for each host; and that a failure names
//! the host in a sentence. Tries the hosts of an address in order and forgets which one worked:
//! after a failover the next call finds the new primary.
//!
//! Next: [`super::driver`] keeps the connection moving, [`super::connection`] uses it.

use std::sync::Arc;

use tokio::time::timeout;
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres::{Client, Connection, Socket};

use super::address::{Address, Endpoint};
use super::cause::Cause;
use super::error::DatabaseError;
use super::explain::Place;
use super::options::{Settings, StatementMode};
use super::outage::{Outage, SaysAway};
use super::session;
use super::tls::{self, Tls};
use super::version::ServerVersion;

/// What a connection is for; the operator sees it behind our name in `pg_stat_activity`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Purpose {
    /// Callers and administration, through the pool.
    Caller,
    /// A batcher or another task that owns its connection, by its name.
    Dedicated(&'static str),
    /// Changing the schema.
    Migrate,
    /// Finding out whether a commit happened.
    Resolve,
    /// The doctor's statements.
    Examine,
    /// Notifications and the heartbeat.
    Listen,
    /// Whether the database is there.
    Probe,
}

impl Purpose {
    /// What a database opens for itself, one each, beside the pool.
    pub(crate) const OWN: [Self; 3] = [Self::Listen, Self::HINTS, Self::Probe];
    /// Hints to other nodes.
    pub(crate) const HINTS: Self = Self::Dedicated("broadcaster");

    fn word(self) -> &'static str {
        match self {
            Self::Caller => "caller",
            Self::Dedicated(name) => name,
            Self::Migrate => "migrate",
            Self::Resolve => "resolve",
            Self::Examine => "examine",
            Self::Listen => "listen",
            Self::Probe => "probe",
        }
    }
}

/// The driver's half of a connection: it moves the bytes and yields notices and notifications.
pub(crate) type Wire = Connection<Socket, <Tls as MakeTlsConnect<Socket>>::Stream>;

/// A new session.
pub(crate) struct Opened {
    pub(crate) client: Client,
    pub(crate) wire: Wire,
    pub(crate) place: Place,
    /// As the server (or the pooler before it) reports it; unknown to some poolers.
    pub(crate) version: Option<ServerVersion>,
    pub(crate) tls: Tls,
}

/// An address with its certificates loaded.
#[derive(Clone)]
pub(crate) struct Connector {
    address: Address,
    tls: Tls,
    pub(crate) outage: Arc<Outage>,
}

impl Connector {
    /// Load what the address needs. Reads files, so it is to be called where blocking is allowed.
    pub(crate) fn load(address: &Address) -> Result<Self, DatabaseError> {
        Ok(Self { address: address.clone(), tls: tls::load(address)?, outage: Arc::new(Outage::new()) })
    }

    /// Open a session on the first host that accepts writes.
    pub(crate) async fn open(&self, settings: &Settings, purpose: Purpose) -> Result<Opened, DatabaseError> {
        let mut failure = None;
        for endpoint in &self.address.endpoints {
            match self.open_one(endpoint, settings, purpose).await {
                Ok(opened) => {
                    self.outage.opened();
                    return Ok(opened);
                }
                Err(error) => failure = Some(more_precise(failure, error)),
            }
        }
        let failure = failure.unwrap_or(DatabaseError::Closed);
        if failure.says_away() {
            self.outage.failed(&failure);
        }
        Err(failure)
    }

    async fn open_one(
        &self,
        endpoint: &Endpoint,
        settings: &Settings,
        purpose: Purpose,
    ) -> Result<Opened, DatabaseError> {
        let place = endpoint.place.clone();
        let mut config = endpoint.config.clone();
        if settings.mode == StatementMode::Direct {
            config.application_name(format!("{} {}", settings.application_name, purpose.word()));
            config.options(session::login_options(settings, endpoint.config.get_options()));
        }
        // The driver's future is tens of kilobytes; boxed, it does not swell the futures of all our
        // callers.
        let login = Box::pin(config.connect(self.tls.clone()));
        let login = timeout(settings.connect_timeout, login).await;
        let (client, wire) = match login {
            Ok(Ok(halves)) => halves,
            Ok(Err(error)) => return Err(place.login(&error)),
            Err(_) => {
                let cause = Cause::lost(format!("no answer within {:?}", settings.connect_timeout));
                return Err(DatabaseError::Unreachable { server: place.server, cause });
            }
        };
        let version = wire.parameter("server_version").and_then(ServerVersion::parse);
        let version = version.map(|version| version.accepted(&place.server)).transpose()?;
        Ok(Opened { client, wire, place, version, tls: self.tls.clone() })
    }
}

impl std::fmt::Debug for Connector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connector").field("address", &self.address).finish_non_exhaustive()
    }
}

/// Of two hosts' failures, the one that says more than silence; of two alike, the later.
fn more_precise(earlier: Option<DatabaseError>, later: DatabaseError) -> DatabaseError {
    match earlier {
        Some(earlier) if matches!(later, DatabaseError::Unreachable { .. }) => earlier,
        _ => later,
    }
}
