//! The rules of this repository that no compiler knows.
//!
//! Owns the table of checks. Each check is a pure function from a [`Tree`] to faults, in a file of
//! its own, so a test makes up the smallest tree that breaks the rule. A fault names a place, what
//! is wrong there, why that matters and what to do. Changes nothing in the tree.
//!
//! Next: the checks, in the order of the table, and [`report`], which prints what they found.

mod changelog;
mod comment_width;
mod crate_edges;
mod decisions;
mod doc_paths;
mod file_length;
mod machine_paths;
mod module_docs;
mod numbering;
mod path_words;
mod report;
mod retired_words;
mod sleeps;
mod sql_contracts;
mod tuple_parameters;
mod unfinished_marks;

pub(crate) use report::Report;

use crate::tree::Tree;
use report::Fault;

/// One rule: its name as printed behind each fault, its reason, and the function that judges.
struct Check {
    name: &'static str,
    reason: &'static str,
    judge: fn(&Tree) -> Vec<Fault>,
}

const CHECKS: &[Check] = &[
    Check {
        name: "crate-edges",
        reason: "a crate exists because of its dependencies, so nobody adds one unseen",
        judge: crate_edges::check,
    },
    Check {
        name: "path-words",
        reason: "a name that fits everything means nothing: no managers, helpers, utilities, infos, data",
        judge: path_words::check,
    },
    Check {
        name: "file-length",
        reason: "a file is read from top to bottom, once; long ones may only shrink",
        judge: file_length::check,
    },
    Check {
        name: "comment-width",
        reason: "a comment is read beside its code, in half a screen",
        judge: comment_width::check,
    },
    Check {
        name: "module-docs",
        reason: "a module opens with what it owns, promises and refuses",
        judge: module_docs::check,
    },
    Check {
        name: "sql-contracts",
        reason: "every statement says what it locks, is used in one place and reads alike",
        judge: sql_contracts::check,
    },
    Check { name: "doc-paths", reason: "a path named in a document exists", judge: doc_paths::check },
    Check {
        name: "retired-words",
        reason: "one word for one idea, the one the field uses: a stranger needs no dictionary of ours",
        judge: retired_words::check,
    },
    Check {
        name: "no-sleep-in-tests",
        reason: "tests wait for events, not for time: a sleep is slow when it works and wrong when it does not",
        judge: sleeps::check,
    },
    Check {
        name: "machine-paths",
        reason: "nothing depends on the machine or the mirror it was written on",
        judge: machine_paths::check,
    },
    Check {
        name: "unfinished-marks",
        reason: "what is merged is finished, and every exception has a reason",
        judge: unfinished_marks::check,
    },
    Check {
        name: "tuple-parameters",
        reason: "a tuple has no names for its parts, so neither a call nor its reader knows which is which",
        judge: tuple_parameters::check,
    },
    Check {
        name: "decisions",
        reason: "a decision has its alternatives and how a test would show it wrong",
        judge: decisions::check,
    },
    Check { name: "changelog", reason: "users read what changed in their words", judge: changelog::check },
];

/// Runs every check.
pub(crate) fn run(tree: &Tree) -> Report {
    let found = |check: &'static Check| (check.judge)(tree).into_iter().map(move |fault| (fault, check.name));
    Report::new(CHECKS.iter().flat_map(found).collect(), tree.paths().count(), CHECKS.len())
}

/// The table of checks, one line each.
pub(crate) fn list() -> String {
    let lines: Vec<String> = CHECKS.iter().map(|check| format!("{:<18} {}", check.name, check.reason)).collect();
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests;
