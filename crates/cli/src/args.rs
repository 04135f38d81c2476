//! The command line as it was typed; `config` gives it a meaning.
//!
//! Next: [`crate::config`].

pub(crate) mod jobs;
pub(crate) mod messages;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{ArgMatches, CommandFactory, FromArgMatches, Parser, Subcommand};

/// The range is that of `reveille_embedded::SUPPORTED_MAJORS`; a test compares them.
const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), " (PostgreSQL 15 to 18)");

const PRECEDENCE: &str = "\
Settings: the built-in defaults (`reveille config default`), then a configuration file, then the environment
(REVEILLE_*, DATABASE_URL), then flags; the last one that sets a value wins. `reveille config show` prints each source.
The file is the one named by --config or REVEILLE_CONFIG, else reveille/config.toml in the user's configuration
directory, else /etc/reveille/config.toml; none in the working directory is read.

Exit codes: 0 done, 1 refused, 2 wrong use, 3 database or server unreachable.";

const SERVE: &str = "\
Examples:
  reveille serve                                             with a private PostgreSQL
  DATABASE_URL=postgres://me@db.example/shop reveille serve  with yours
  reveille serve --listen localhost:7000 --log-format json";

const MIGRATE: &str = "\
Examples:
  reveille migrate up                            with the database of DATABASE_URL or --database-url
  reveille migrate sql --from 8 > upgrade.sql    to apply it by hand";

const DOCTOR: &str = "\
Examples:
  reveille doctor
  reveille doctor --json --database-url postgres://me@db.example/shop";

const CONFIG: &str = "\
Examples:
  reveille config show                                         each value, and which layer set it
  reveille config default > ~/.config/reveille/config.toml     a file to start from";

const COMPLETIONS: &str = "\
Examples:
  source <(reveille completions bash)                                 now, in this shell
  reveille completions fish > ~/.config/fish/completions/reveille.fish

`make install` installs those of bash, zsh and fish.";

const MAN: &str = "\
Examples:
  reveille man ~/.local/share/man/man1 && man reveille-push

`make install` installs them.";

/// PostgreSQL queues that wake up instead of polling.
#[derive(Debug, Parser)]
#[command(name = "reveille", version = VERSION, after_help = PRECEDENCE)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) everywhere: Everywhere,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Flags that every command understands.
#[derive(Debug, clap::Args)]
pub(crate) struct Everywhere {
    /// Read settings from this file
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// The running server that push, pop, ack, tail, queues, groups and dlq use
    #[arg(long, global = true, value_name = "URL")]
    server: Option<String>,
    /// Use this PostgreSQL; without one, a private PostgreSQL is started
    #[arg(long, global = true, value_name = "URL")]
    database_url: Option<String>,
    /// The schema that holds Reveille's tables
    #[arg(long, global = true, value_name = "NAME")]
    schema: Option<String>,
    /// Where the private PostgreSQL keeps its data
    #[arg(long, global = true, value_name = "DIR")]
    data_dir: Option<String>,
    /// Never fetch PostgreSQL binaries
    #[arg(long, global = true)]
    no_download: bool,
    /// off, error, warn, info, debug or trace
    #[arg(long, global = true, value_name = "LEVEL")]
    log_level: Option<String>,
    /// text or json
    #[arg(long, global = true, value_name = "FORMAT")]
    log_format: Option<String>,
    /// Print JSON, also the reason of a failure
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Serve HTTP until Ctrl-C
    #[command(after_help = SERVE)]
    Serve(ServeFlags),
    /// Push messages to a queue of a running server
    Push(messages::Push),
    /// Pop messages, under a lease or for good
    Pop(messages::Pop),
    /// Settle popped messages: completed, failed, retry or dead
    Ack(messages::Ack),
    /// Show what is pushed to a queue from now on
    Tail(messages::Tail),
    /// List queues and how many messages wait; show, configure or delete one
    Queues(messages::Queues),
    /// List consumer groups and how far they are; move or delete one
    Groups(messages::Groups),
    /// List dead letters; put them back to work or delete them
    Dlq(messages::Dlq),
    /// List the queues of jobs; show, retry, cancel or redrive jobs, pause a queue
    Jobs(jobs::Jobs),
    /// Bring the schema up to date, show its state, print it, or remove it
    #[command(after_help = MIGRATE)]
    Migrate {
        #[command(subcommand)]
        step: Migrate,
    },
    /// Examine the database: what is wrong and what to do
    #[command(after_help = DOCTOR)]
    Doctor {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Show the settings
    #[command(after_help = CONFIG)]
    Config {
        #[command(subcommand)]
        step: Config,
    },
    /// Run, find or fetch the private PostgreSQL by itself (`reveille postgres --help`)
    #[command(disable_help_flag = true)]
    Postgres {
        /// Passed on unchanged
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<OsString>,
    },
    /// Print a script that completes commands and flags in a shell
    #[command(after_help = COMPLETIONS)]
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Write a manual page for each command
    #[command(after_help = MAN)]
    Man {
        /// Where to, such as /usr/local/share/man/man1; created if need be
        directory: PathBuf,
    },
}

#[derive(Debug, Default, clap::Args)]
pub(crate) struct ServeFlags {
    /// Listen on this loopback address
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<String>,
    /// Let clients use this host name for the server, too; may be repeated
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    allowed_host: Vec<String>,
    /// Let web pages of this origin use this server; may be repeated
    #[arg(long, value_name = "ORIGIN", value_delimiter = ',')]
    allowed_origin: Vec<String>,
    /// Refuse a schema that is not up to date instead of migrating it
    #[arg(long)]
    no_migrate: bool,
    /// Wait this long for a database that is not there yet; 0s does not wait
    #[arg(long, value_name = "TIME")]
    wait_for_database: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Migrate {
    /// Apply what is missing; safe from many processes at once
    Up {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Print what was applied and what is missing
    Status {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Print the migrations as a script for psql, without connecting
    Sql {
        /// Only what comes after this version
        #[arg(long, value_name = "VERSION", default_value_t = 0)]
        from: i32,
    },
    /// Remove everything Reveille made, with all messages and jobs
    Uninstall {
        /// Really do it
        #[arg(long)]
        yes: bool,
        /// Also drop what others made that depends on it
        #[arg(long)]
        force: bool,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum Config {
    /// Print each effective value and where it came from
    Show {
        #[command(flatten)]
        serve: ServeFlags,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Print the built-in defaults, every setting with its meaning: a file to start from
    Default,
}

/// The flags that are settings.
pub(crate) const FLAGS: &[(&str, &str)] = &[
    ("client.server", "--server"),
    ("database.migrate", "--no-migrate"),
    ("database.schema", "--schema"),
    ("database.url", "--database-url"),
    ("database.wait", "--wait-for-database"),
    ("http.allowed_hosts", "--allowed-host"),
    ("http.allowed_origins", "--allowed-origin"),
    ("http.listen", "--listen"),
    ("log.format", "--log-format"),
    ("log.level", "--log-level"),
    ("postgres.data_dir", "--data-dir"),
    ("postgres.download", "--no-download"),
];

impl Args {
    /// Reads a command line.
    pub(crate) fn read(typed: &[OsString]) -> Result<Self, clap::Error> {
        let mut command = Self::command();
        let matches = command.try_get_matches_from_mut(typed)?;
        refuse_flags_of_a_list(&mut command, &matches)?;
        Self::from_arg_matches(&matches).map_err(|error| error.format(&mut command))
    }

    /// The settings that flags set, as `(setting, value)`.
    pub(crate) fn settings(&self) -> Vec<(&'static str, String)> {
        let everywhere = &self.everywhere;
        let nothing = ServeFlags::default();
        let serve = match &self.command {
            Command::Serve(serve) | Command::Config { step: Config::Show { serve, .. } } => serve,
            _ => &nothing,
        };
        let list = |entries: &[String]| (!entries.is_empty()).then(|| entries.join(","));
        let off = |is_off: bool| is_off.then(|| "false".to_owned());
        let settings = [
            ("client.server", everywhere.server.clone()),
            ("database.migrate", off(serve.no_migrate)),
            ("database.schema", everywhere.schema.clone()),
            ("database.url", everywhere.database_url.clone()),
            ("database.wait", serve.wait_for_database.clone()),
            ("http.allowed_hosts", list(&serve.allowed_host)),
            ("http.allowed_origins", list(&serve.allowed_origin)),
            ("http.listen", serve.listen.clone()),
            ("log.format", everywhere.log_format.clone()),
            ("log.level", everywhere.log_level.clone()),
            ("postgres.data_dir", everywhere.data_dir.clone()),
            ("postgres.download", off(everywhere.no_download)),
        ];
        settings.into_iter().filter_map(|(key, value)| Some((key, value?))).collect()
    }
}

/// Whether failures are wanted as JSON. Not from [`Args`]: a command line that cannot be read is a
/// failure, too.
pub(crate) fn wants_json(typed: &[OsString]) -> bool {
    typed.iter().take_while(|word| *word != "--").any(|word| word == "--json")
}

/// `queues --search x delete mail` has a filter of the list before another command, which would
/// ignore it. Flags that every command understands may stand anywhere.
fn refuse_flags_of_a_list(root: &mut clap::Command, matches: &ArgMatches) -> Result<(), clap::Error> {
    let Some((name, list)) = matches.subcommand() else { return Ok(()) };
    let Some((step, _)) = list.subcommand() else { return Ok(()) };
    let everywhere = |id: &clap::Id| root.get_arguments().any(|arg| arg.is_global_set() && arg.get_id() == id);
    let own = root.find_subcommand(name).into_iter().flat_map(clap::Command::get_arguments);
    let was_typed = |id: &clap::Id| list.value_source(id.as_str()) == Some(ValueSource::CommandLine);
    let misplaced = own.map(clap::Arg::get_id).find(|id| !everywhere(id) && was_typed(id));
    let Some(id) = misplaced else { return Ok(()) };
    let why =
        format!("--{id} before '{step}' filters the list of '{name}' only: leave it out, or put it behind '{step}'");
    Err(root.error(ErrorKind::ArgumentConflict, why))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definitions_of_the_flags_agree_with_each_other() {
        Args::command().debug_assert();
    }

    #[test]
    fn the_version_names_the_range_of_postgresql() {
        let majors = reveille_embedded::SUPPORTED_MAJORS;

        assert!(VERSION.ends_with(&format!("(PostgreSQL {} to {})", majors.start(), majors.end())));
    }

    #[test]
    fn every_flag_that_is_a_setting_is_in_the_table() {
        let all = "reveille --server g --database-url a --schema b --data-dir c --no-download --log-level d --log-format e serve \
                   --listen f --allowed-host h --allowed-origin i --no-migrate --wait-for-database j";
        let args = Args::read(&all.split_whitespace().map(OsString::from).collect::<Vec<_>>()).unwrap();

        let set: Vec<&str> = args.settings().into_iter().map(|(key, _)| key).collect();

        assert_eq!(set, FLAGS.iter().map(|(key, _)| *key).collect::<Vec<_>>());
    }
}
