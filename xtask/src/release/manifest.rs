//! The version in the workspace's manifest: its own, and that of each of our crates that another
//! one depends on.

use anyhow::{Context as _, ensure};
use semver::Version;
use toml_edit::{DocumentMut, Item, value};

/// The manifest with another version; comments and order stay. An older version is refused.
pub(super) fn with_version(manifest: &str, version: &Version) -> anyhow::Result<String> {
    let mut manifest: DocumentMut = manifest.parse().context("Cargo.toml cannot be read")?;
    let own = &mut manifest["workspace"]["package"]["version"];
    let current = own.as_str().context("Cargo.toml has no version of the workspace")?;
    let current: Version = current.parse().with_context(|| format!("the version {current:?} cannot be read"))?;
    ensure!(*version >= current, "{version} is older than {current}, the version of the workspace");
    set(own, version);

    let dependencies = manifest["workspace"]["dependencies"].as_table_like_mut();
    let dependencies = dependencies.context("Cargo.toml has no dependencies of the workspace")?;
    for (_, dependency) in dependencies.iter_mut() {
        if is_ours_and_published(dependency) {
            set(&mut dependency["version"], version);
        }
    }
    Ok(manifest.to_string())
}

/// Crates that are not published are named by their path alone.
fn is_ours_and_published(dependency: &Item) -> bool {
    let has = |key| dependency.get(key).is_some();
    has("path") && has("version")
}

/// Changes the value, and keeps the spaces and the comment around it.
fn set(item: &mut Item, version: &Version) {
    let around = item.as_value().map(|value| value.decor().clone());
    *item = value(version.to_string());
    if let (Some(value), Some(around)) = (item.as_value_mut(), around) {
        *value.decor_mut() = around;
    }
}
