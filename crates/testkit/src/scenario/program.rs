//! The program that users run, as it lies in the tree.

use std::path::PathBuf;

use anyhow::Context;
use tokio::process::Command;

use super::progress;
use crate::ROOT;

/// Builds the program, and says where it is.
pub async fn build() -> anyhow::Result<PathBuf> {
    progress("building reveille");
    let mut build = Command::new("cargo");
    build.args(["build", "--release", "--quiet", "--bin", "reveille"]).current_dir(ROOT);
    let built = build.status().await.context("cannot run cargo")?;
    anyhow::ensure!(built.success(), "reveille could not be built");
    let ours = std::env::current_exe()?;
    let target = ours.parent().and_then(|profile| profile.parent()).context("this program lies nowhere")?;
    let program = target.join("release/reveille");
    anyhow::ensure!(program.exists(), "{} is not there after it was built", program.display());
    Ok(program)
}
