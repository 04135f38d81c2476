//! A release: the version in the manifests, the entry in the change log, a commit with its tag, and
//! archives with their checksums.
//!
//! Owns the order of the steps. Promises that everything that can be refused is refused before
//! anything is written, and that nothing leaves this machine: pushing the tag and publishing the
//! crates are two commands that it prints. Knows neither TOML nor Markdown; `manifest` and
//! `change_log` do.
//!
//! Next: [`manifest`], [`change_log`], [`archive`].

mod archive;
mod change_log;
mod manifest;

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, ensure};
use semver::Version;

/// Where archives are put, below the root; no commit holds it.
const DIST: &str = "target/dist";

/// What was asked for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Release {
    pub(crate) version: Version,
    pub(crate) rehearsal: Rehearsal,
}

/// Whether the release is only tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rehearsal {
    /// Archives are made; the tree, the history and the tags stay as they are.
    Yes,
    /// The manifests and the change log are written, committed and tagged.
    No,
}

impl Release {
    /// Makes it, in the repository at `root`.
    pub(crate) fn make(&self, root: &Path) -> anyhow::Result<()> {
        let texts = Texts::of(root)?.released_as(&self.version, &today()?)?;
        if self.rehearsal == Rehearsal::No {
            self.refuse_what_is_not_ready(root)?;
            texts.write(root)?;
            // Our own crates have another version now; nothing else in the lock file changes.
            run(root, "cargo", &["update", "--workspace"])?;
        }
        let archives = archive::make(root, &root.join(DIST), &self.version)?;
        for archive in &archives {
            println!("{}", archive.display());
        }
        if self.rehearsal == Rehearsal::Yes {
            println!("a rehearsal: the tree is unchanged, there is no commit and no tag");
            println!("the program in the archive still has the version of the tree");
            return Ok(());
        }
        self.commit_and_tag(root)
    }

    fn tag(&self) -> String {
        format!("v{}", self.version)
    }

    fn refuse_what_is_not_ready(&self, root: &Path) -> anyhow::Result<()> {
        let changed = read(root, "git", &["status", "--porcelain"])?;
        ensure!(changed.is_empty(), "the tree has changes that are not committed:\n{changed}");
        let tag = self.tag();
        let taken = read(root, "git", &["tag", "--list", &tag])?;
        ensure!(taken.is_empty(), "the tag {tag} exists already");
        Ok(())
    }

    fn commit_and_tag(&self, root: &Path) -> anyhow::Result<()> {
        let tag = self.tag();
        run(root, "git", &["add", "Cargo.toml", "Cargo.lock", "CHANGELOG.md"])?;
        // The first release has the version that the manifests have had all along.
        if !read(root, "git", &["diff", "--cached", "--name-only"])?.is_empty() {
            run(root, "git", &["commit", "--quiet", "--message", &format!("Release {}", self.version)])?;
        }
        run(root, "git", &["tag", "--annotate", &tag, "--message", &format!("Reveille {}", self.version)])?;
        println!("tagged {tag}; to publish it:\n  git push origin main {tag}\n  cargo publish --workspace --locked");
        Ok(())
    }
}

/// The two files that say which version this is.
#[derive(Debug, PartialEq, Eq)]
struct Texts {
    manifest: String,
    change_log: String,
}

impl Texts {
    fn of(root: &Path) -> anyhow::Result<Self> {
        let text = |path: &str| fs::read_to_string(root.join(path)).with_context(|| format!("could not read {path}"));
        Ok(Self { manifest: text("Cargo.toml")?, change_log: text("CHANGELOG.md")? })
    }

    fn released_as(&self, version: &Version, today: &str) -> anyhow::Result<Self> {
        let manifest = manifest::with_version(&self.manifest, version)?;
        let change_log = change_log::with_release(&self.change_log, version, today)?;
        Ok(Self { manifest, change_log })
    }

    fn write(&self, root: &Path) -> anyhow::Result<()> {
        fs::write(root.join("Cargo.toml"), &self.manifest).context("could not write Cargo.toml")?;
        fs::write(root.join("CHANGELOG.md"), &self.change_log).context("could not write CHANGELOG.md")
    }
}

/// The date in UTC, as the change log has it.
fn today() -> anyhow::Result<String> {
    read(Path::new("."), "date", &["--utc", "+%Y-%m-%d"])
}

/// Runs a program to its end, which must be a success.
fn run(root: &Path, program: &str, arguments: &[&str]) -> anyhow::Result<()> {
    let status = Command::new(program).args(arguments).current_dir(root).status();
    let status = status.with_context(|| format!("could not start {program}"))?;
    ensure!(status.success(), "`{program} {}` ended with {status}", arguments.join(" "));
    Ok(())
}

/// What a program prints, without the last newline.
fn read(root: &Path, program: &str, arguments: &[&str]) -> anyhow::Result<String> {
    let output = Command::new(program).args(arguments).current_dir(root).output();
    let output = output.with_context(|| format!("could not start {program}"))?;
    ensure!(output.status.success(), "`{program} {}` ended with {}", arguments.join(" "), output.status);
    Ok(String::from_utf8(output.stdout).context("the output is not UTF-8")?.trim_end().to_owned())
}

#[cfg(test)]
mod tests;
