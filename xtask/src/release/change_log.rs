//! The change log at a release: what was unreleased gets the version and the date, and an empty
//! place for what comes next stands above it.

use anyhow::{Context as _, ensure};
use semver::Version;

const UNRELEASED: &str = "## Unreleased\n";

/// The change log of the release. One without an entry is refused: users would read nothing.
pub(super) fn with_release(change_log: &str, version: &Version, today: &str) -> anyhow::Result<String> {
    let heading = format!("## {version} - {today}\n");
    let (before, after) = change_log.split_once(UNRELEASED).context("CHANGELOG.md has no heading \"## Unreleased\"")?;
    let entry = after.split("\n## ").next().unwrap_or_default();
    ensure!(!entry.trim().is_empty(), "CHANGELOG.md has nothing under \"Unreleased\"");
    Ok(format!("{before}{UNRELEASED}\n{heading}{after}"))
}
