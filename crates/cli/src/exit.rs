//! How a run ends: a code for scripts, a sentence for people.

use std::error::Error;
use std::process::ExitCode;

use reveille::database::DatabaseError;
use reveille::jobs::JobsError;
use reveille_embedded::EmbeddedError;
use reveille_server::ServerError;
use serde_json::{Value, json};

use crate::output;
use crate::remote::RemoteError;

/// What clap writes before a fault.
const FAULT: &str = "error: ";

/// What scripts see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// The command is done.
    Done = 0,
    /// The command is refused, and trying again changes nothing.
    Refused = 1,
    /// The command line or the settings are wrong.
    WrongUse = 2,
    /// The database or the server did not answer; trying again later may help.
    Unreachable = 3,
    /// A signal ended the command early; the shell's convention for Ctrl-C.
    Interrupted = 130,
}

impl Exit {
    /// The code of a failure that has no code of its own.
    fn word(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Refused => "refused",
            Self::WrongUse => "wrong_use",
            Self::Unreachable => "unreachable",
            Self::Interrupted => "interrupted",
        }
    }
}

/// How a failure is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    /// Sentences for people.
    Text,
    /// One line for programs: `{"error":{"code":"…","message":"…"}}`.
    Json,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// Why a command was not done.
#[derive(Debug)]
pub(crate) struct Failure {
    exit: Exit,
    sentences: Vec<String>,
    /// The server's word for it.
    code: Option<String>,
    /// Text of clap: help, the version, or a fault of the command line.
    typed: Option<clap::Error>,
}

impl Failure {
    pub(crate) fn new(exit: Exit, sentences: Vec<String>) -> Self {
        Self { exit, sentences, code: None, typed: None }
    }

    pub(crate) fn refused(sentence: impl Into<String>) -> Self {
        Self::new(Exit::Refused, vec![sentence.into()])
    }

    pub(crate) fn exit(&self) -> Exit {
        self.exit
    }

    /// The reasons in one line, for a log.
    pub(crate) fn reasons(&self) -> String {
        self.sentences.join("; ")
    }

    /// Prints the reasons, and returns the code to exit with.
    pub(crate) fn report(self, style: Style) -> ExitCode {
        match (&self.typed, style) {
            // Help and the version are data, whatever the style.
            (Some(typed), _) if !typed.use_stderr() => {
                let printed = output::print(&typed.render().to_string());
                return printed.map_or_else(|failure| failure.report(style), |()| self.exit.into());
            }
            (_, Style::Json) => output::note_as_it_is(&format!("{}\n", self.as_json())),
            (Some(typed), Style::Text) => note_typed(&typed.render().to_string()),
            (None, Style::Text) => self.sentences.iter().for_each(|sentence| output::note(sentence)),
        }
        self.exit.into()
    }

    fn as_json(&self) -> Value {
        let code = self.code.as_deref().unwrap_or(self.exit.word());
        let message =
            self.typed.as_ref().map_or_else(|| self.reasons(), |typed| first_paragraph(&typed.render().to_string()));
        json!({ "error": { "code": code, "message": message } })
    }
}

/// Text of clap about a fault of the command line, or help if there was no command at all.
fn note_typed(text: &str) {
    match text.strip_prefix(FAULT) {
        Some(fault) => output::note(fault.trim_end()),
        None => output::note_as_it_is(text),
    }
}

/// The fault without tips and usage, in one line.
fn first_paragraph(text: &str) -> String {
    let Some(fault) = text.strip_prefix(FAULT) else { return "a command is missing: see --help".to_owned() };
    let paragraph = fault.split("\n\n").next().unwrap_or_default();
    paragraph.split_whitespace().collect::<Vec<_>>().join(" ")
}

impl From<clap::Error> for Failure {
    fn from(error: clap::Error) -> Self {
        let exit = if error.use_stderr() { Exit::WrongUse } else { Exit::Done };
        Self { exit, sentences: Vec::new(), code: None, typed: Some(error) }
    }
}

impl From<DatabaseError> for Failure {
    fn from(error: DatabaseError) -> Self {
        let exit = match &error {
            DatabaseError::Options(_) => Exit::WrongUse,
            // Transient, because a standby may be promoted. But a command with the address of a
            // standby needs the answer that it accepts no writes.
            DatabaseError::ReadOnly { .. } => Exit::Refused,
            error if error.is_transient() => Exit::Unreachable,
            _ => Exit::Refused,
        };
        Self::new(exit, vec![with_causes(&error)])
    }
}

impl From<JobsError> for Failure {
    fn from(error: JobsError) -> Self {
        match error {
            JobsError::Database(error) => error.into(),
            // A name that is not valid.
            JobsError::Refused(sentence) => Self::new(Exit::WrongUse, vec![sentence]),
            error => Self::new(Exit::Refused, vec![with_causes(&error)]),
        }
    }
}

impl From<EmbeddedError> for Failure {
    fn from(error: EmbeddedError) -> Self {
        let exit = if error.is_unreachable() { Exit::Unreachable } else { Exit::Refused };
        Self::new(exit, vec![error.sentence()])
    }
}

impl From<ServerError> for Failure {
    fn from(error: ServerError) -> Self {
        let exit = if matches!(error, ServerError::Options(_)) { Exit::WrongUse } else { Exit::Refused };
        Self::new(exit, vec![with_causes(&error)])
    }
}

impl From<RemoteError> for Failure {
    fn from(error: RemoteError) -> Self {
        let exit = match &error {
            RemoteError::Away(_) => Exit::Unreachable,
            RemoteError::Refused(fault) if fault.status == 400 => Exit::WrongUse,
            RemoteError::Refused(_) | RemoteError::Strange(_) => Exit::Refused,
        };
        let sentence = error.to_string();
        let code = match error {
            RemoteError::Refused(fault) => Some(fault.code).filter(|code| !code.is_empty()),
            RemoteError::Away(_) | RemoteError::Strange(_) => None,
        };
        Self { code, ..Self::new(exit, vec![sentence]) }
    }
}

/// Our sentence says what is true and what to do; the underlying errors follow in brackets.
fn with_causes(error: &dyn Error) -> String {
    let mut causes = Vec::new();
    let mut next = error.source();
    while let Some(cause) = next {
        causes.push(cause.to_string());
        next = cause.source();
    }
    if causes.is_empty() { error.to_string() } else { format!("{error} ({})", causes.join(": ")) }
}
