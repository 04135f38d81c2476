//! Chores of this repository, run as `cargo xtask <chore>`.
//!
//! Owns the reading of arguments, the printing and the exit status: 0 for a clean tree, 1 for
//! faults, 2 for wrong use and for a tree that cannot be read. What is wrong with a tree is decided
//! in [`tidy`] alone.
//!
//! Next: [`tree`], which reads the repository, then [`tidy`], which judges it.

mod reading;
mod tidy;
mod tree;

use std::process::ExitCode;

use anyhow::Context as _;

use crate::tree::Tree;

const HELP: &str = "\
Chores of this repository.

Usage: cargo xtask <chore>

  tidy          check the rules of this repository that no compiler knows
  tidy --list   print each check and its reason
  tidy --wide-comments
                print xtask/comment-width.txt as it should be
  --help        print this text

Exit status: 0 nothing to say, 1 faults found, 2 wrong use or a tree that cannot be read.
";

/// What the arguments ask for.
#[derive(Debug, PartialEq, Eq)]
enum Chore {
    Help,
    Tidy,
    ListChecks,
    ListWideComments,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let Some(chore) = chore(&words) else {
        eprint!("xtask: no chore is called like this: {:?}\n\n{HELP}", words.join(" "));
        return ExitCode::from(2);
    };
    run(&chore).unwrap_or_else(|error| {
        eprintln!("xtask: {error:#}");
        ExitCode::from(2)
    })
}

fn chore(words: &[&str]) -> Option<Chore> {
    match words {
        ["--help" | "-h" | "help"] | ["tidy", "--help" | "-h"] => Some(Chore::Help),
        ["tidy"] => Some(Chore::Tidy),
        ["tidy", "--list"] => Some(Chore::ListChecks),
        ["tidy", "--wide-comments"] => Some(Chore::ListWideComments),
        _ => None,
    }
}

fn run(chore: &Chore) -> anyhow::Result<ExitCode> {
    match chore {
        Chore::Help => print!("{HELP}"),
        Chore::ListChecks => print!("{}", tidy::list()),
        Chore::ListWideComments => print!("{}", tidy::wide_comments(&this_tree()?)),
        Chore::Tidy => {
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
    fn each_chore_is_asked_for_by_its_words() {
        assert_eq!(chore(&["tidy"]), Some(Chore::Tidy));
        assert_eq!(chore(&["tidy", "--list"]), Some(Chore::ListChecks));
        assert_eq!(chore(&["tidy", "--wide-comments"]), Some(Chore::ListWideComments));
        assert_eq!(chore(&["--help"]), Some(Chore::Help));
    }

    #[test]
    fn unknown_words_are_wrong_use() {
        assert_eq!(chore(&[]), None);
        assert_eq!(chore(&["tidy", "--fix"]), None);
        assert_eq!(chore(&["clean"]), None);
    }
}
