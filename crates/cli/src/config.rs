//! The configuration: typed values, or every fault at once.
//!
//! Four layers: the built-in default file, a configuration file, the environment, flags. Values of
//! all layers are texts until [`Config::read`] turns them into options of the services, so there is
//! one parser and one kind of fault. The default file is the list of all settings.
//!
//! Next: [`layers`] gathers texts, [`reader`] parses them.

mod fault;
mod file;
mod jobs;
mod layers;
mod other_names;
mod queues;
mod reader;
mod secret;
mod units;

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use reveille::database::{DatabaseOptions, StatementMode};
use reveille::jobs::JobsOptions;
use reveille::messages::{MessagesOptions, Subscription};
use reveille_embedded::{Download, EmbeddedError, EmbeddedOptions};
use reveille_server::{ServerError, ServerOptions};
use tracing::level_filters::LevelFilter;

pub(crate) use layers::{Effective, Setting};
pub(crate) use other_names::meaningless;
pub(crate) use secret::masked;
pub(crate) use units::time;

use crate::args::Args;
use crate::environment;
use crate::exit::Failure;
use crate::remote::ServerUrl;
use fault::Faults;
use reader::Reader;

/// The reference of every setting.
pub(crate) const DEFAULTS: &str = include_str!("config.default.toml");

/// A placeholder for the private server's socket while the other options are checked.
const SOME_PLACE: &str = "host=/tmp user=postgres";

/// The options of all services.
#[derive(Debug)]
pub(crate) struct Config {
    pub(crate) server: ServerOptions,
    pub(crate) messages: MessagesOptions,
    pub(crate) jobs: JobsOptions,
    pub(crate) database: DatabaseSettings,
    pub(crate) private: PrivateSettings,
    /// The running server that commands use.
    pub(crate) remote: ServerUrl,
    pub(crate) log: Log,
}

/// How to use a database; its address may be known only later.
pub(crate) struct DatabaseSettings {
    /// `None`: the private database.
    pub(crate) url: Option<String>,
    listen_url: Option<String>,
    pub(crate) schema: String,
    mode: StatementMode,
    statement_timeout: Duration,
    lock_timeout: Duration,
    connect_timeout: Option<Duration>,
    pub(crate) pool_size: usize,
    pub(crate) at_start: AtStart,
    /// How long `serve` waits for the database of `url`.
    pub(crate) wait: Duration,
}

/// What `serve` does about the schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AtStart {
    Migrate,
    Check,
}

/// Where the private PostgreSQL lives.
#[derive(Debug)]
pub(crate) struct PrivateSettings {
    data_dir: Option<String>,
    binaries: Option<String>,
    run_as: Option<String>,
    download: Download,
}

/// How we log.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Log {
    /// `None`: the default of the command.
    pub(crate) level: Option<LevelFilter>,
    pub(crate) format: LogFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LogFormat {
    Text,
    Json,
}

/// The configuration, as typed values and as `config show` prints it.
pub(crate) fn load(args: &Args) -> Result<(Config, Effective), Failure> {
    let mut faults = Faults::default();
    let effective = Effective::gather(args, environment::variable, &mut faults);
    let config = Config::read(&mut Reader::new(&effective, &mut faults));
    config.check(&mut faults);
    faults.none_or_failure()?;
    Ok((config, effective))
}

impl Config {
    fn read(read: &mut Reader<'_>) -> Self {
        Self {
            server: ServerOptions::default()
                .listen(read.address("http.listen"))
                .allowed_hosts(read.list("http.allowed_hosts"))
                .allowed_origins(read.list("http.allowed_origins"))
                .max_connections(read.count("http.max_connections"))
                .head_timeout(read.time("http.head_timeout"))
                .body_timeout(read.time("http.body_timeout"))
                .max_body(read.size("http.max_body"))
                .max_in_flight(read.size("http.max_in_flight"))
                .max_waiters(read.count("http.max_waiters"))
                .max_poll_timeout(read.time("http.max_poll_timeout"))
                .write_timeout(read.time("http.write_timeout"))
                .request_timeout(read.time("http.request_timeout"))
                .pop_timeout(read.time("http.pop_timeout"))
                .pop_batch(u32::try_from(read.count("http.pop_batch")).unwrap_or(u32::MAX))
                .subscription(read.choice("http.subscription", SUBSCRIPTIONS))
                .drain_timeout(read.time("http.drain_timeout")),
            messages: queues::read(read),
            jobs: jobs::read(read),
            database: DatabaseSettings::read(read),
            private: PrivateSettings {
                data_dir: read.some_text("postgres.data_dir"),
                binaries: read.some_text("postgres.binaries"),
                run_as: read.some_text("postgres.run_as"),
                download: read.switch("postgres.download", Download::Allowed, Download::Forbidden),
            },
            remote: read.server("client.server"),
            log: Log {
                level: read.some_choice("log.level", LEVELS),
                format: read.choice("log.format", &[("text", LogFormat::Text), ("json", LogFormat::Json)]),
            },
        }
    }

    /// Finds the faults that only the services can judge.
    fn check(&self, faults: &mut Faults) {
        if self.database.url.is_none() && self.database.listen_url.is_some() {
            // A private server instead would hide that half of the configuration is missing.
            faults.add("database.listen_url is set and database.url is not; set both or none".to_owned());
        }
        let url = self.database.url.as_deref().unwrap_or(SOME_PLACE);
        if let Err(error) = self.database.options(url).check() {
            faults.extend(error.faults().iter().map(|fault| format!("[database]: {fault}")));
        }
        // An address that is not allowed is refused when it is bound.
        if let Err(ServerError::Options(list)) = self.server.check() {
            faults.extend(list.iter().map(|fault| format!("[http]: {fault}")));
        }
    }
}

/// As with Queen, every value but `new` begins at the beginning.
const SUBSCRIPTIONS: &[(&str, Subscription)] =
    &[("all", Subscription::All), ("new", Subscription::New), ("from_beginning", Subscription::All)];

const LEVELS: &[(&str, LevelFilter)] = &[
    ("off", LevelFilter::OFF),
    ("error", LevelFilter::ERROR),
    ("warn", LevelFilter::WARN),
    ("info", LevelFilter::INFO),
    ("debug", LevelFilter::DEBUG),
    ("trace", LevelFilter::TRACE),
];

impl DatabaseSettings {
    fn read(read: &mut Reader<'_>) -> Self {
        let modes = [("direct", StatementMode::Direct), ("pooled", StatementMode::Pooled)];
        Self {
            url: read.some_text("database.url"),
            listen_url: read.some_text("database.listen_url"),
            schema: read.text("database.schema"),
            mode: read.choice("database.statement_mode", &modes),
            statement_timeout: read.time("database.statement_timeout"),
            lock_timeout: read.time("database.lock_timeout"),
            connect_timeout: read.some_time("database.connect_timeout"),
            pool_size: read.count("database.pool_size"),
            at_start: read.switch("database.migrate", AtStart::Migrate, AtStart::Check),
            wait: read.time("database.wait"),
        }
    }

    /// The options for the database at `url`.
    pub(crate) fn options(&self, url: &str) -> DatabaseOptions {
        let mut options = DatabaseOptions::new(url)
            .schema(&self.schema)
            .statement_mode(self.mode)
            .statement_timeout(self.statement_timeout)
            .lock_timeout(self.lock_timeout)
            .pool_size(self.pool_size);
        if let Some(limit) = self.connect_timeout {
            options = options.connect_timeout(limit);
        }
        match &self.listen_url {
            Some(listen_url) => options.listen_url(listen_url),
            None => options,
        }
    }
}

impl std::fmt::Debug for DatabaseSettings {
    /// Without the URLs, which hold passwords.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DatabaseSettings").field("schema", &self.schema).finish_non_exhaustive()
    }
}

impl PrivateSettings {
    /// The environment that `reveille-embedded` reads, with the values of the settings in place of
    /// its variables.
    pub(crate) fn environment(&self, name: &str) -> Option<OsString> {
        let value = match name {
            "REVEILLE_DATA_DIR" => &self.data_dir,
            "REVEILLE_PG_BIN" => &self.binaries,
            "REVEILLE_PG_USER" => &self.run_as,
            _ => return environment::variable(name),
        };
        value.as_ref().map(OsString::from)
    }

    /// Options for the private PostgreSQL, guarded by `program` and its leading arguments.
    pub(crate) fn options(&self, program: &[OsString]) -> Result<EmbeddedOptions, EmbeddedError> {
        let options = EmbeddedOptions::from_environment(|name| self.environment(name), program.iter().cloned())?;
        Ok(options.download(self.download))
    }

    /// Whether binaries may be fetched.
    pub(crate) fn download(&self) -> Download {
        self.download
    }

    /// The default data directory; `None` for a user without a home.
    pub(crate) fn usual_data_dir(&self) -> Option<String> {
        let options = self.options(&[]).ok()?;
        Some(Path::display(options.chosen_data_dir()).to_string())
    }
}

#[cfg(test)]
mod tests;
