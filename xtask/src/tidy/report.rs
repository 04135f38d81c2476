//! Faults, and how they are printed: `path:line: sentence [check]`, then one line that counts them.

use std::fmt;

/// Something wrong at a place.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Fault {
    pub(super) path: String,
    pub(super) line: usize,
    pub(super) sentence: String,
}

impl Fault {
    /// The sentence says what is wrong, why that matters and what to do.
    pub(super) fn new(path: impl Into<String>, line: usize, sentence: impl Into<String>) -> Self {
        Self { path: path.into(), line, sentence: sentence.into() }
    }
}

/// What all checks found, ready to print.
#[derive(Debug)]
pub(crate) struct Report {
    faults: Vec<(Fault, &'static str)>,
    files: usize,
    checks: usize,
}

impl Report {
    /// Puts faults, each with the name of its check, in the order of their places.
    pub(super) fn new(mut faults: Vec<(Fault, &'static str)>, files: usize, checks: usize) -> Self {
        faults.sort();
        Self { faults, files, checks }
    }

    /// Whether no check found a fault.
    pub(crate) fn is_clean(&self) -> bool {
        self.faults.is_empty()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (Fault { path, line, sentence }, check) in &self.faults {
            writeln!(out, "{path}:{line}: {sentence} [{check}]")?;
        }
        let faults = match self.faults.len() {
            0 => "no fault".to_owned(),
            1 => "1 fault".to_owned(),
            many => format!("{many} faults"),
        };
        writeln!(out, "tidy: {faults} in {} files, {} checks", self.files, self.checks)
    }
}
