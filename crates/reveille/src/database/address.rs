//! Where a URL leads: one endpoint per host, each with its own rule for TLS.
//!
//! Understands both forms of libpq (`postgres://…` and `key=value …`). `sslmode` and `sslrootcert`
//! are read here, because the driver knows only three modes and rejects the other keys; everything
//! else is the driver's to judge. Sets what a URL leaves open: keepalives, the user timeout,
//! read-write sessions. Reads no file and no environment.
//!
//! Next: [`super::tls`] for the certificates, [`super::connector`] to get there.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use tokio_postgres::Config;
use tokio_postgres::config::{Host, TargetSessionAttrs};

use super::explain::Place;
use super::tls::{Roots, TlsMode};
use pairs::Pairs;

mod pairs;

/// A dead peer is noticed within about 25 s even when nothing is being sent.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(10);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(5);
const KEEPALIVE_RETRIES: u32 = 3;
/// Bytes that stay unacknowledged this long end the connection; without it Linux tries for a
/// quarter of an hour.
const USER_TIMEOUT: Duration = Duration::from_secs(15);

/// What a sentence says when the URL names no user: the driver takes the user of this process.
const SYSTEM_USER: &str = "of the system (the URL names none)";
const DATABASE_OF_USER: &str = "of the user's name (the URL names none)";

/// A parsed URL.
#[derive(Debug, Clone)]
pub(crate) struct Address {
    /// In the order they are tried.
    pub(crate) endpoints: Vec<Endpoint>,
    pub(crate) roots: Roots,
    pub(crate) connect_timeout: Option<Duration>,
    pub(crate) application_name: Option<String>,
}

/// One host of a URL.
#[derive(Debug, Clone)]
pub(crate) struct Endpoint {
    pub(crate) config: Config,
    pub(crate) tls: TlsMode,
    pub(crate) place: Place,
}

impl Address {
    /// Read a URL, or say everything that is wrong with it. No sentence contains a value of the URL
    /// but `sslmode`.
    pub(crate) fn parse(url: &str) -> Result<Self, Vec<String>> {
        let mut pairs = Pairs::split(url).map_err(|fault| vec![fault])?;
        let mut faults = Vec::new();
        let mode = pairs.take("sslmode").map(|mode| mode.parse::<TlsMode>()).transpose();
        let mode = mode.unwrap_or_else(|fault| {
            faults.push(fault);
            None
        });
        let roots = roots(pairs.take("sslrootcert").as_deref());
        if pairs.get("target_session_attrs").is_some_and(|attrs| attrs != "read-write") {
            faults.push("target_session_attrs must be read-write: Reveille writes".to_owned());
        }
        let config = pairs.rest().parse::<Config>();
        let config = match config {
            Ok(config) => config,
            Err(error) => {
                faults.push(std::error::Error::source(&error).map_or_else(|| error.to_string(), ToString::to_string));
                return Err(faults);
            }
        };
        let endpoints = endpoints(&config, mode, &pairs, &mut faults);
        if !faults.is_empty() {
            return Err(faults);
        }
        Ok(Self {
            endpoints,
            roots,
            connect_timeout: config.get_connect_timeout().copied(),
            application_name: config.get_application_name().map(ToOwned::to_owned),
        })
    }

    /// Whether any endpoint is encrypted, but its server is not verified.
    pub(crate) fn is_unverified(&self) -> bool {
        self.endpoints.iter().any(|endpoint| endpoint.tls.is_unverified(&self.roots))
    }
}

fn roots(file: Option<&str>) -> Roots {
    match file {
        None => Roots::Default,
        Some("system") => Roots::System,
        Some(path) => Roots::File(PathBuf::from(path)),
    }
}

fn endpoints(config: &Config, mode: Option<TlsMode>, pairs: &Pairs, faults: &mut Vec<String>) -> Vec<Endpoint> {
    let (hosts, addrs, ports) = (config.get_hosts(), config.get_hostaddrs(), config.get_ports());
    let count = hosts.len().max(addrs.len());
    if count == 0 {
        faults.push("no host is named: add one, as in host=/var/run/postgresql or host=localhost".to_owned());
    }
    if !hosts.is_empty() && !addrs.is_empty() && hosts.len() != addrs.len() {
        faults.push(format!("{} hosts and {} hostaddrs do not match", hosts.len(), addrs.len()));
    }
    if ports.len() > 1 && ports.len() != count {
        faults.push(format!("{} ports for {count} hosts: name one port, or one for each host", ports.len()));
    }
    (0..count)
        .map(|i| {
            let port = ports.get(i).or(ports.first()).copied().unwrap_or(5432);
            endpoint(config, Spot { host: hosts.get(i), addr: addrs.get(i).copied(), port }, mode, pairs)
        })
        .collect()
}

/// One host as the URL spells it.
#[derive(Clone, Copy)]
struct Spot<'a> {
    host: Option<&'a Host>,
    addr: Option<IpAddr>,
    port: u16,
}

impl Spot<'_> {
    /// Connections that never leave the machine are plain unless the URL says otherwise; a Unix
    /// socket has no TLS.
    fn tls(&self, mode: Option<TlsMode>) -> TlsMode {
        let local = match (self.host, self.addr) {
            (Some(Host::Unix(_)), _) => return TlsMode::Disable,
            (_, Some(addr)) => addr.is_loopback(),
            (Some(Host::Tcp(name)), None) => {
                name == "localhost" || name.parse::<IpAddr>().is_ok_and(|addr| addr.is_loopback())
            }
            (None, None) => false,
        };
        mode.unwrap_or(if local { TlsMode::Disable } else { TlsMode::VerifyFull })
    }

    fn server(&self) -> String {
        match (self.host, self.addr) {
            (Some(Host::Unix(path)), _) => format!("{}:{}", path.display(), self.port),
            // An IPv6 address has colons of its own.
            (Some(Host::Tcp(name)), _) if name.contains(':') => format!("[{name}]:{}", self.port),
            (Some(Host::Tcp(name)), _) => format!("{name}:{}", self.port),
            (None, Some(addr)) => SocketAddr::new(addr, self.port).to_string(),
            (None, None) => format!(":{}", self.port),
        }
    }
}

fn endpoint(whole: &Config, spot: Spot<'_>, mode: Option<TlsMode>, pairs: &Pairs) -> Endpoint {
    let tls = spot.tls(mode);
    let mut config = Config::new();
    match (spot.host, spot.addr) {
        (Some(Host::Unix(path)), _) => config.host_path(path),
        (Some(Host::Tcp(name)), _) => config.host(name),
        // The name is needed for the certificate; an address is the only one there is.
        (None, Some(addr)) => config.host(addr.to_string()),
        (None, None) => &mut config,
    };
    if let Some(addr) = spot.addr {
        config.hostaddr(addr);
    }
    config.port(spot.port);
    config.ssl_mode(tls.on_the_wire()).ssl_negotiation(whole.get_ssl_negotiation());
    config.channel_binding(whole.get_channel_binding());
    config.target_session_attrs(TargetSessionAttrs::ReadWrite);
    if let Some(password) = whole.get_password() {
        config.password(password);
    }
    if let Some(options) = whole.get_options() {
        config.options(options);
    }
    keep_alive(&mut config, whole, pairs);
    let user = whole.get_user().unwrap_or_default().to_owned();
    let database = whole.get_dbname().unwrap_or(&user).to_owned();
    if !user.is_empty() {
        config.user(&user);
    }
    if !database.is_empty() {
        config.dbname(&database);
    }
    let named = |name: String, otherwise: &str| if name.is_empty() { otherwise.to_owned() } else { name };
    let place =
        Place { server: spot.server(), user: named(user, SYSTEM_USER), database: named(database, DATABASE_OF_USER) };
    Endpoint { config, tls, place }
}

fn keep_alive(config: &mut Config, whole: &Config, pairs: &Pairs) {
    let chosen = |key| pairs.get(key).is_some();
    config.keepalives(whole.get_keepalives());
    config.keepalives_idle(if chosen("keepalives_idle") { whole.get_keepalives_idle() } else { KEEPALIVE_IDLE });
    config.keepalives_interval(whole.get_keepalives_interval().unwrap_or(KEEPALIVE_INTERVAL));
    config.keepalives_retries(whole.get_keepalives_retries().unwrap_or(KEEPALIVE_RETRIES));
    config.tcp_user_timeout(whole.get_tcp_user_timeout().copied().unwrap_or(USER_TIMEOUT));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tls_of(url: &str) -> Vec<TlsMode> {
        Address::parse(url).unwrap().endpoints.iter().map(|endpoint| endpoint.tls).collect()
    }

    #[test]
    fn what_stays_on_the_machine_is_plain_and_the_rest_is_verified() {
        assert_eq!(tls_of("host=/tmp user=a"), [TlsMode::Disable]);
        assert_eq!(tls_of("postgres://a@localhost/b"), [TlsMode::Disable]);
        assert_eq!(tls_of("postgres://a@127.0.0.9/b"), [TlsMode::Disable]);
        assert_eq!(tls_of("host=::1 user=a"), [TlsMode::Disable]);
        assert_eq!(tls_of("postgres://a@db.example.com/b"), [TlsMode::VerifyFull]);
        assert_eq!(tls_of("host=db hostaddr=127.0.0.1 user=a"), [TlsMode::Disable]);
    }

    #[test]
    fn each_host_of_a_list_has_its_own_rule() {
        assert_eq!(tls_of("postgres://a@localhost,db/b"), [TlsMode::Disable, TlsMode::VerifyFull]);
        assert_eq!(tls_of("host=/tmp,db user=a sslmode=verify-ca"), [TlsMode::Disable, TlsMode::VerifyCa]);
    }

    #[test]
    fn a_url_and_its_pairs_lead_to_the_same_place() {
        let url = Address::parse("postgres://me:s%20ecret@db:6000/shop?sslmode=disable&connect_timeout=3").unwrap();
        let pairs = Address::parse(
            "host=db port=6000 user=me password='s ecret' dbname=shop sslmode=disable connect_timeout=3",
        );

        assert_eq!(url.endpoints[0].config, pairs.unwrap().endpoints[0].config);
        assert_eq!(url.endpoints[0].place.server, "db:6000");
        assert_eq!(url.connect_timeout, Some(Duration::from_secs(3)));
    }

    #[test]
    fn a_unix_socket_directory_can_be_written_into_a_url() {
        let address = Address::parse("postgres://me@%2Ftmp%2Fpg/shop").unwrap();

        assert_eq!(address.endpoints[0].place.server, "/tmp/pg:5432");
        assert_eq!(address.endpoints[0].tls, TlsMode::Disable);
    }

    #[test]
    fn an_address_of_the_sixth_version_is_kept_apart_from_its_port() {
        for url in ["postgres://me@[::1]:6000/shop", "hostaddr=::1 port=6000 user=me"] {
            assert_eq!(Address::parse(url).unwrap().endpoints[0].place.server, "[::1]:6000", "{url}");
        }
    }

    #[test]
    fn a_sentence_has_no_hole_where_the_url_names_no_user() {
        let place = Address::parse("host=/tmp").unwrap().endpoints.remove(0).place;

        assert_eq!(place.user, SYSTEM_USER);
        assert_eq!(place.database, DATABASE_OF_USER);
    }

    #[test]
    fn every_fault_is_named_and_no_password_is() {
        let faults = Address::parse("user=me password=hush sslmode=maybe target_session_attrs=any").unwrap_err();
        let text = faults.join("; ");

        assert_eq!(faults.len(), 3, "{text}");
        assert!(text.contains("sslmode"), "{text}");
        assert!(text.contains("target_session_attrs"), "{text}");
        assert!(text.contains("no host"), "{text}");
        assert!(!text.contains("hush"), "{text}");
    }

    #[test]
    fn an_unknown_key_is_named() {
        assert_eq!(Address::parse("host=a frobnicate=1").unwrap_err(), ["unknown option `frobnicate`"]);
    }

    #[test]
    fn chosen_keepalives_are_kept() {
        let address = Address::parse("host=db user=a keepalives_idle=77 tcp_user_timeout=5").unwrap();

        assert_eq!(address.endpoints[0].config.get_keepalives_idle(), Duration::from_secs(77));
        assert_eq!(address.endpoints[0].config.get_tcp_user_timeout(), Some(&Duration::from_secs(5)));
    }
}
