//! Archives of what `make install` installs, for people without Rust, and their checksums.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use flate2::Compression;
use flate2::write::GzEncoder;
use semver::Version;
use sha2::{Digest as _, Sha256};

/// Files at the root that belong into an archive too.
const DOCUMENTS: &[&str] = &["README.md", "CHANGELOG.md", "LICENSE-APACHE", "LICENSE-MIT"];

/// Where the files are after they were copied from an archive, as the unit of systemd names it. Not
/// the directory in which the archive is made.
const PREFIX: &str = "/usr/local";

/// Builds, installs into a directory of its own below `dist`, and packs it. The archive and the
/// file with its checksum.
pub(super) fn make(root: &Path, dist: &Path, version: &Version) -> anyhow::Result<Vec<PathBuf>> {
    let name = format!("reveille-{version}-{}", target(root)?);
    let stage = dist.join(&name);
    if stage.exists() {
        fs::remove_dir_all(&stage).with_context(|| format!("could not empty {}", stage.display()))?;
    }
    fs::create_dir_all(&stage).with_context(|| format!("could not create {}", stage.display()))?;
    let destination = format!("DESTDIR={}", stage.display());
    super::run(root, "make", &["--no-print-directory", "install", &destination, &format!("PREFIX={PREFIX}")])?;
    let installed = stage.join(PREFIX.trim_start_matches('/'));
    for document in DOCUMENTS {
        fs::copy(root.join(document), installed.join(document))
            .with_context(|| format!("could not copy {document}"))?;
    }
    let archive = dist.join(format!("{name}.tar.gz"));
    pack(&installed, &name, &archive)?;
    Ok(vec![with_checksum(&archive)?, archive])
}

/// What this machine's programs are built for, such as `x86_64-unknown-linux-gnu`.
fn target(root: &Path) -> anyhow::Result<String> {
    let about = super::read(root, "rustc", &["--version", "--verbose"])?;
    let host = about.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.context("rustc does not say which machine this is")?.to_owned())
}

/// Puts everything below `stage` into an archive, where it is below `name`.
pub(super) fn pack(stage: &Path, name: &str, archive: &Path) -> anyhow::Result<()> {
    let file = File::create(archive).with_context(|| format!("could not create {}", archive.display()))?;
    let mut packed = tar::Builder::new(GzEncoder::new(file, Compression::best()));
    // The owner and the clock of the machine that packs do not belong into an archive.
    packed.mode(tar::HeaderMode::Deterministic);
    packed.append_dir_all(name, stage).with_context(|| format!("could not pack {}", stage.display()))?;
    packed.into_inner().and_then(GzEncoder::finish).with_context(|| format!("could not end {}", archive.display()))?;
    Ok(())
}

/// Writes the checksum of an archive beside it, in the form that `sha256sum --check` reads.
pub(super) fn with_checksum(archive: &Path) -> anyhow::Result<PathBuf> {
    let bytes = fs::read(archive).with_context(|| format!("could not read {}", archive.display()))?;
    let sum = Sha256::digest(&bytes).iter().fold(String::new(), |hex, byte| hex + &format!("{byte:02x}"));
    let name = archive.file_name().unwrap_or_default().to_string_lossy();
    let path = archive.with_file_name(format!("{name}.sha256"));
    fs::write(&path, format!("{sum}  {name}\n")).with_context(|| format!("could not write {}", path.display()))?;
    Ok(path)
}
