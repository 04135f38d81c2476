//! Searches for installations where people put them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::{env, fs};

use super::{Binaries, probe};
use crate::EmbeddedOptions;

/// Directories whose entries are one installation each, with `bin` inside.
const HOMES: [&str; 8] = [
    "/usr/lib/postgresql",                          // Debian, Ubuntu
    "/usr",                                         // Red Hat: /usr/pgsql-17
    "/opt/homebrew/opt",                            // Homebrew on Apple silicon
    "/usr/local/opt",                               // Homebrew on Intel
    "/home/linuxbrew/.linuxbrew/opt",               // Homebrew on Linux
    "/Applications/Postgres.app/Contents/Versions", // Postgres.app
    "/Library/PostgreSQL",                          // EnterpriseDB
    "/opt",
];

/// What a search found.
#[derive(Debug)]
pub(super) struct Found {
    /// Best place first and within a place newest first.
    pub(super) usable: Vec<Binaries>,
    /// Where a `postgres` is that does not work, and why, in words.
    pub(super) broken: BTreeSet<String>,
}

pub(super) fn search(options: &EmbeddedOptions) -> Found {
    let on_path = options.search_path.iter().flat_map(env::split_paths);
    let places = std::iter::once(on_path.collect())
        .chain(HOMES.iter().map(|home| installed_below(Path::new(home))))
        .chain([installed_below(&options.cache_dir)]);
    let (mut usable, mut broken) = (Vec::new(), BTreeSet::new());
    for place in places {
        usable.extend(newest_first(probe_all(place, &mut broken)));
    }
    let mut seen = BTreeSet::new();
    usable.retain(|binaries: &Binaries| seen.insert(binaries.dir.clone()));
    Found { usable, broken }
}

fn installed_below(home: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(home).into_iter().flatten().flatten();
    // An installation is renamed to its final name when it is whole.
    let whole = entries.filter(|entry| !entry.file_name().to_string_lossy().ends_with(".new"));
    whole.map(|entry| entry.path().join("bin")).collect()
}

/// Probing runs a program, so only where the file is.
fn probe_all(place: Vec<PathBuf>, broken: &mut BTreeSet<String>) -> Vec<Binaries> {
    let there = place.into_iter().filter(|dir| dir.join("postgres").exists());
    let mut probed = |dir: PathBuf| {
        let complain = |reason| broken.insert(format!("{} does not work: {reason}", dir.display()));
        probe(&dir).map_err(complain).ok()
    };
    there.filter_map(&mut probed).collect()
}

fn newest_first(mut found: Vec<Binaries>) -> Vec<Binaries> {
    found.sort_by_key(|binaries| std::cmp::Reverse(binaries.major));
    found
}
