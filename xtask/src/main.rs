//! Tasks of this repository, run as `cargo xtask <task>`.
//!
//! Owns the reading of arguments, the printing and the exit status: 0 for a clean tree, 1 for
//! faults, 2 for wrong use and for a tree that cannot be read. What is wrong with a tree is decided
//! in [`tidy`] alone.
//!
//! Next: [`tree`], which reads the repository, then [`tidy`], which judges it; or [`mod@release`].

mod reading;
mod release;
mod tidy;
mod tree;

use std::process::ExitCode;

use anyhow::Context as _;

use crate::release::{Rehearsal, Release};
use crate::tree::Tree;

const HELP: &str = "\
Tasks of this repository.

Usage: cargo xtask <task>

  tidy                          check the rules of this repository that no compiler knows
  tidy --list                   print each check and its reason
  release VERSION               write the version, date the change log, commit, tag, and make archives in target/dist
  release VERSION --rehearsal   only make the archives
  --help                        print this text

Exit status: 0 nothing to say, 1 faults found, 2 wrong use or a tree that cannot be read.
";

/// What the arguments ask for.
#[derive(Debug, PartialEq, Eq)]
enum Task {
    Help,
    Tidy,
    ListChecks,
    Release(Release),
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let Some(task) = task(&words) else {
        eprint!("xtask: no task is called like this: {:?}\n\n{HELP}", words.join(" "));
        return ExitCode::from(2);
    };
    run(&task).unwrap_or_else(|error| {
        eprintln!("xtask: {error:#}");
        ExitCode::from(2)
    })
}

fn task(words: &[&str]) -> Option<Task> {
    match words {
        ["--help" | "-h" | "help"] | ["tidy", "--help" | "-h"] => Some(Task::Help),
        ["tidy"] => Some(Task::Tidy),
        ["tidy", "--list"] => Some(Task::ListChecks),
        ["release", version] => release(version, Rehearsal::No),
        ["release", version, "--rehearsal"] => release(version, Rehearsal::Yes),
        _ => None,
    }
}

fn release(version: &str, rehearsal: Rehearsal) -> Option<Task> {
    let version = version.parse().ok()?;
    Some(Task::Release(Release { version, rehearsal }))
}

fn run(task: &Task) -> anyhow::Result<ExitCode> {
    match task {
        Task::Help => print!("{HELP}"),
        Task::ListChecks => print!("{}", tidy::list()),
        Task::Release(release) => release.make(&tree::root()?)?,
        Task::Tidy => {
            let report = tidy::run(&this_tree()?);
            print!("{report}");
            return Ok(if report.is_clean() { ExitCode::SUCCESS } else { ExitCode::FAILURE });
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn this_tree() -> anyhow::Result<Tree> {
    Tree::of_this_repository().context("could not read the repository")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_task_is_asked_for_by_its_words() {
        assert_eq!(task(&["tidy"]), Some(Task::Tidy));
        assert_eq!(task(&["tidy", "--list"]), Some(Task::ListChecks));
        assert_eq!(task(&["--help"]), Some(Task::Help));
        let release = Release { version: semver::Version::new(0, 2, 0), rehearsal: Rehearsal::Yes };
        assert_eq!(task(&["release", "0.2.0", "--rehearsal"]), Some(Task::Release(release)));
    }

    #[test]
    fn unknown_words_are_wrong_use() {
        assert_eq!(task(&[]), None);
        assert_eq!(task(&["tidy", "--fix"]), None);
        assert_eq!(task(&["clean"]), None);
        assert_eq!(task(&["release"]), None);
        assert_eq!(task(&["release", "tomorrow"]), None);
    }
}
