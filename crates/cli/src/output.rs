//! Output: data to standard output, notes and logs to standard error.
//!
//! A closed pipe is no failure. Data that cannot be written for another reason, such as a full
//! disk, is one: half a script must not pass for a whole one. A note that cannot be written is
//! never a failure.

use std::fmt::{Debug, Write as _};
use std::io::{ErrorKind, IsTerminal, Write};
use std::path::Path;

use serde_json::Value;
use tracing::field::Field;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::field::MakeExt;
use tracing_subscriber::fmt::FormatFields;
use tracing_subscriber::fmt::format::{Writer, debug_fn};

use crate::config::{Log, LogFormat};
use crate::environment;
use crate::exit::Failure;
use crate::table::printable;

/// Whether standard output still has a reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reader {
    There,
    Gone,
}

/// Data, unchanged.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    print_for(text).map(drop)
}

/// The same for a command that ends when its reader is gone.
pub(crate) fn print_for(text: &str) -> Result<Reader, Failure> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(Reader::There),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(Reader::Gone),
        Err(error) => Err(Failure::refused(format!("cannot write to standard output: {error}"))),
    }
}

/// One line of data.
pub(crate) fn line(text: &str) -> Result<(), Failure> {
    print(&format!("{text}\n"))
}

/// Data for programs.
pub(crate) fn json(value: &Value) -> Result<(), Failure> {
    line(&format!("{value:#}"))
}

/// A sentence for people.
pub(crate) fn note(sentence: &str) {
    note_as_it_is(&format!("reveille: {sentence}\n"));
}

/// Text for people, unchanged.
pub(crate) fn note_as_it_is(text: &str) {
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}

/// A path that can be pasted into a shell: on macOS the default data directory has a space in it.
pub(crate) fn pasteable(path: &Path) -> String {
    shell_word(&path.display().to_string())
}

/// A text as one word of a shell.
pub(crate) fn shell_word(text: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "/._-+:@%,".contains(letter);
    let is_plain = !text.is_empty() && !text.starts_with('-') && text.chars().all(plain);
    match text {
        _ if is_plain => text.to_owned(),
        _ if text.contains(char::is_control) => escaped_word(text),
        _ => format!("'{}'", text.replace('\'', r"'\''")),
    }
}

/// A word with control characters, which a terminal would obey, as bash, zsh and POSIX 2024 quote
/// it: `$'a\x1b'`.
fn escaped_word(text: &str) -> String {
    let mut word = String::from("$'");
    for letter in text.chars() {
        match letter {
            '\\' | '\'' => word.extend(['\\', letter]),
            letter if letter.is_control() => {
                // Three octal digits are complete, so a digit that follows is not part of them.
                for byte in letter.encode_utf8(&mut [0; 4]).bytes() {
                    let _ = write!(word, "\\{byte:03o}");
                }
            }
            letter => word.push(letter),
        }
    }
    word.push('\'');
    word
}

/// Starts logging, unless it was started before.
pub(crate) fn start_logs(log: Log, usual: LevelFilter) {
    let colours = std::io::stderr().is_terminal() && environment::variable("NO_COLOR").is_none();
    let logs = tracing_subscriber::fmt().with_writer(std::io::stderr).with_max_level(log.level.unwrap_or(usual));
    // The subscriber would report a log line that cannot be written to standard error as well, and
    // panic when that fails: a server must not end because the reader of its logs has ended.
    let logs = logs.log_internal_errors(false);
    let _ = match log.format {
        LogFormat::Text => logs.with_ansi(colours).fmt_fields(one_line()).try_init(),
        LogFormat::Json => logs.json().flatten_event(true).try_init(),
    };
}

/// Fields of a log line without newlines and control characters: clients choose names, and error
/// sentences repeat them.
fn one_line() -> impl for<'w> FormatFields<'w> + Send + Sync + 'static {
    let field = |writer: &mut Writer<'_>, field: &Field, value: &dyn Debug| {
        let text = printable(&format!("{value:?}"));
        match field.name() {
            "message" => write!(writer, "{text}"),
            name => write!(writer, "{name}={text}"),
        }
    };
    debug_fn(field).delimited(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_survive_a_shell() {
        let pasteable = |text: &str| pasteable(Path::new(text));

        assert_eq!(pasteable("/var/lib/reveille/run"), "/var/lib/reveille/run");
        assert_eq!(pasteable("/Users/ada/Application Support"), "'/Users/ada/Application Support'");
        assert_eq!(pasteable("/it's"), r"'/it'\''s'");
    }

    #[test]
    fn a_word_for_a_shell_has_no_control_characters() {
        assert_eq!(shell_word("a\n\u{1b}[2J'\\1"), r"$'a\012\033[2J\'\\1'");
        assert_eq!(shell_word("\u{9b}31m"), r"$'\302\23331m'");
        assert_eq!(shell_word("ü ü"), "'ü ü'");
    }
}
