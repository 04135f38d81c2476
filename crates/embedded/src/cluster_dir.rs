//! The files of one data directory.
//!
//! Owns their names and nothing else: `pg` (the cluster), `run` (the socket), three locks and two
//! logs. Refuses a directory that something else has filled.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::error::EmbeddedError;
use crate::identity;

/// The port of a server that listens on its socket only; part of the socket's name.
pub(crate) const PORT: u16 = 5432;

/// The kernel's limit for the path of a socket, by the smaller of Linux (107) and macOS (103).
const SOCKET_PATH_MAX: usize = 103;

/// PostgreSQL keeps paths in 1024 bytes, and its own file names come on top.
const DATA_DIR_PATH_MAX: usize = 768;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ClusterDir {
    base: PathBuf,
}

/// What `postmaster.pid` says of the server that wrote it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Postmaster {
    pub(crate) pid: i32,
    pub(crate) port: u16,
    pub(crate) is_ready: bool,
}

impl ClusterDir {
    /// Makes the directory if it is not there, and refuses one that is not ours.
    pub(crate) fn open(path: &Path) -> Result<Self, EmbeddedError> {
        // Root's directory must let the server's user pass through to what it owns.
        let mode = if identity::is_root() { 0o711 } else { 0o700 };
        make_dirs(path, mode).map_err(EmbeddedError::file("make the data directory", path))?;
        let base = path.canonicalize().map_err(EmbeddedError::file("enter the data directory", path))?;
        let dir = Self { base };
        dir.refuse_unspeakable()?;
        dir.refuse_foreign()?;
        Ok(dir)
    }

    /// The directory as it is; one that is not there is not made.
    pub(crate) fn joined_or_left(path: &Path) -> io::Result<Self> {
        Ok(Self { base: path.canonicalize()? })
    }

    /// The directory of a program that has joined it. One that has vanished since is not made
    /// again.
    pub(crate) fn joined(path: &Path) -> Result<Self, EmbeddedError> {
        let dir = Self { base: path.to_owned() };
        let users = dir.users_lock();
        users.metadata().map_err(EmbeddedError::file("find", &users))?;
        Ok(dir)
    }

    /// The pid file and connection strings hold the path as one line of text.
    fn refuse_unspeakable(&self) -> Result<(), EmbeddedError> {
        let refuse = |reason| Err(EmbeddedError::DataDirPath { dir: self.base.clone(), reason });
        match self.base.to_str() {
            None => refuse("it is not UTF-8"),
            Some(text) if text.contains(char::is_control) => refuse("it has a control character"),
            Some(text) if text.len() > DATA_DIR_PATH_MAX => refuse("it is longer than 768 bytes"),
            Some(_) => Ok(()),
        }
    }

    fn refuse_foreign(&self) -> Result<(), EmbeddedError> {
        let foreign = |what| Err(EmbeddedError::ForeignDirectory { dir: self.base.clone(), what });
        // `lost+found` is what an empty file system of its own looks like; `cache` is ours when a
        // user has no home.
        let harmless = |name: &OsStr| name == "lost+found" || name == "cache";
        let mut entries = fs::read_dir(&self.base).map_err(EmbeddedError::file("read", &self.base))?;
        let is_empty = !entries.any(|entry| entry.is_ok_and(|entry| !harmless(&entry.file_name())));
        // In this order: `users.lock` comes first of all, so whatever another program that starts
        // just now has made, this has been made before.
        if is_empty || self.users_lock().exists() {
            return Ok(());
        }
        if self.base.join("PG_VERSION").exists() {
            return foreign("a PostgreSQL cluster that Reveille did not make");
        }
        foreign("not empty, and not a data directory of Reveille")
    }

    pub(crate) fn base(&self) -> &Path {
        &self.base
    }

    pub(crate) fn pgdata(&self) -> PathBuf {
        self.base.join("pg")
    }

    /// Where initdb works; renamed to [`Self::pgdata`] when it is whole.
    pub(crate) fn unfinished_pgdata(&self) -> PathBuf {
        self.base.join("pg.new")
    }

    /// Held in share by every program that uses the server.
    pub(crate) fn users_lock(&self) -> PathBuf {
        self.base.join("users.lock")
    }

    /// Held by the one supervisor.
    pub(crate) fn supervisor_lock(&self) -> PathBuf {
        self.base.join("super.lock")
    }

    /// Held by every process of the cluster, as its standard input.
    pub(crate) fn alive_lock(&self) -> PathBuf {
        self.base.join("alive.lock")
    }

    pub(crate) fn postgres_log(&self) -> PathBuf {
        self.base.join("postgres.log")
    }

    pub(crate) fn supervisor_log(&self) -> PathBuf {
        self.base.join("supervisor.log")
    }

    /// The directory of the socket: `run`, or a short one when the path would not fit a socket
    /// address.
    pub(crate) fn socket_dir(&self) -> PathBuf {
        let usual = self.base.join("run");
        let longest = usual.join(".s.PGSQL.65535").into_os_string().into_encoded_bytes();
        // To the server and to clients alike, a comma begins another host.
        if longest.len() <= SOCKET_PATH_MAX && !longest.contains(&b',') {
            return usual;
        }
        let digest = Sha256::digest(self.base.as_os_str().as_encoded_bytes());
        let short = digest.iter().take(8).fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
        PathBuf::from(format!("/tmp/reveille-{}-{short:016x}", identity::effective_uid()))
    }

    /// The major version that made the cluster, if there is one.
    pub(crate) fn major(&self) -> Option<u32> {
        fs::read_to_string(self.pgdata().join("PG_VERSION")).ok()?.trim().parse().ok()
    }

    /// What the pid file says. It may be stale: only a lock or the socket shows whether that server
    /// lives.
    pub(crate) fn postmaster(&self) -> Option<Postmaster> {
        parse_postmaster(&fs::read_to_string(self.pgdata().join("postmaster.pid")).ok()?)
    }

    /// The server that accepts connections on the socket, if one does.
    pub(crate) fn listening(&self) -> Option<Postmaster> {
        self.postmaster().filter(|postmaster| self.accepts(postmaster))
    }

    /// The server that is ready for queries, if one is. One that still recovers is not bothered
    /// with connections.
    pub(crate) fn ready(&self) -> Option<Postmaster> {
        self.postmaster().filter(|postmaster| postmaster.is_ready && self.accepts(postmaster))
    }

    /// Only the postmaster itself accepts, so its pid file is true at that moment.
    fn accepts(&self, postmaster: &Postmaster) -> bool {
        UnixStream::connect(self.socket_dir().join(format!(".s.PGSQL.{}", postmaster.port))).is_ok()
    }
}

/// Makes a directory and those above it that are missing, with this mode whatever the umask: under
/// `umask 077` root would lock out the user that runs the server.
pub(crate) fn make_dirs(path: &Path, mode: u32) -> io::Result<()> {
    let missing: Vec<&Path> = path.ancestors().take_while(|dir| is_missing(dir)).collect();
    for dir in missing.into_iter().rev() {
        match fs::create_dir(dir) {
            Ok(()) => fs::set_permissions(dir, Permissions::from_mode(mode))?,
            // Another program that starts just now made it, and sets its mode.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    if fs::metadata(path)?.is_dir() { Ok(()) } else { Err(io::ErrorKind::NotADirectory.into()) }
}

fn is_missing(dir: &Path) -> bool {
    !dir.as_os_str().is_empty() && fs::metadata(dir).is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
}

/// Makes a directory only `owner` can enter, or checks that it is one.
pub(crate) fn make_private(dir: &Path, owner: Option<identity::RunAs>) -> Result<(), EmbeddedError> {
    match DirBuilder::new().mode(0o700).create(dir) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => refuse_planted(dir, owner)?,
        Err(error) => return Err(EmbeddedError::file("make", dir)(error)),
    }
    fs::set_permissions(dir, Permissions::from_mode(0o700)).map_err(EmbeddedError::file("protect", dir))?;
    if let Some(owner) = owner {
        std::os::unix::fs::chown(dir, Some(owner.uid), Some(owner.gid)).map_err(EmbeddedError::file("own", dir))?;
    }
    Ok(())
}

/// In a directory that all users can write, such as /tmp, another user may have made a directory of
/// our name.
fn refuse_planted(dir: &Path, owner: Option<identity::RunAs>) -> Result<(), EmbeddedError> {
    let found = fs::symlink_metadata(dir).map_err(EmbeddedError::file("inspect", dir))?;
    let ours = [Some(identity::effective_uid()), owner.map(|owner| owner.uid)];
    if found.is_dir() && ours.contains(&Some(found.uid())) {
        return Ok(());
    }
    Err(EmbeddedError::ForeignDirectory { dir: dir.to_owned(), what: "not a directory of this user" })
}

fn parse_postmaster(text: &str) -> Option<Postmaster> {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    Some(Postmaster {
        pid: lines.first()?.parse().ok()?,
        port: lines.get(3)?.parse().ok()?,
        // "standby" is what a server that follows another one writes when it answers queries.
        is_ready: lines.get(7).is_some_and(|status| ["ready", "standby"].contains(status)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pid_file_is_read_line_by_line() {
        let text = "4711\n/d/pg\n1700000000\n5433\n/d/run\n\n  12345 7\nready   \n";

        assert_eq!(parse_postmaster(text), Some(Postmaster { pid: 4711, port: 5433, is_ready: true }));
    }

    #[test]
    fn a_half_written_pid_file_is_no_answer() {
        assert_eq!(parse_postmaster(""), None);
        assert_eq!(parse_postmaster("4711\n/d/pg\n"), None);
    }

    #[test]
    fn a_path_no_socket_can_have_gets_a_short_one() {
        let long = ClusterDir { base: PathBuf::from("/").join("x".repeat(100)) };
        let short = ClusterDir { base: "/var/lib/reveille".into() };
        let comma = ClusterDir { base: "/srv/a,b".into() };

        assert!(long.socket_dir().join(".s.PGSQL.65535").as_os_str().len() <= SOCKET_PATH_MAX);
        assert!(comma.socket_dir().starts_with("/tmp"));
        assert_eq!(short.socket_dir(), Path::new("/var/lib/reveille/run"));
    }
}
