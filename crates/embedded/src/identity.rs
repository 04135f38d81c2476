//! Who runs the server.
//!
//! PostgreSQL refuses to run as root. An existing cluster is run by its owner, also when another
//! user starts it; a new one by the first candidate that exists and can reach its files.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use nix::unistd::{Uid, User, geteuid};

use crate::EmbeddedOptions;
use crate::error::EmbeddedError;

/// The user a root process becomes before it runs anything of PostgreSQL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RunAs {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
}

pub(crate) fn effective_uid() -> u32 {
    geteuid().as_raw()
}

pub(crate) fn is_root() -> bool {
    geteuid().is_root()
}

/// Decides which user runs the cluster `pgdata`, and checks that this user can enter all of
/// `places`. `None`: this process's user.
pub(crate) fn choose(
    options: &EmbeddedOptions,
    pgdata: &Path,
    places: &[&Path],
) -> Result<Option<RunAs>, EmbeddedError> {
    let owner = fs::metadata(pgdata).ok().map(|found| (found.uid(), found.gid()));
    match (is_root(), owner) {
        (false, Some((uid, _))) if uid != effective_uid() => Err(foreign(pgdata, uid)),
        (false, _) => Ok(None),
        (true, Some((0, _))) => Err(EmbeddedError::OwnedByRoot { pgdata: pgdata.to_owned() }),
        (true, Some((uid, gid))) => enterable(name_of(uid), RunAs { uid, gid }, places).map(Some),
        (true, None) => first_candidate(options, places).map(Some),
    }
}

fn first_candidate(options: &EmbeddedOptions, places: &[&Path]) -> Result<RunAs, EmbeddedError> {
    let by_name = |name: &str| User::from_name(name).ok().flatten();
    let candidates: Vec<User> = match &options.run_as {
        Some(name) => by_name(name).into_iter().collect(),
        None => {
            let sudo = options.sudo_uid.filter(|uid| *uid != 0);
            let caller = sudo.and_then(|uid| User::from_uid(Uid::from_raw(uid)).ok().flatten());
            caller.into_iter().chain(by_name("postgres")).chain(by_name("nobody")).collect()
        }
    };
    let mut refusal =
        EmbeddedError::NoUser { tried: options.run_as.clone().unwrap_or_else(|| "postgres or nobody".to_owned()) };
    for (nth, user) in candidates.into_iter().enumerate() {
        let run_as = RunAs { uid: user.uid.as_raw(), gid: user.gid.as_raw() };
        match enterable(user.name, run_as, places) {
            Ok(run_as) => return Ok(run_as),
            Err(error) if nth == 0 => refusal = error,
            Err(_) => {}
        }
    }
    Err(refusal)
}

fn enterable(user: String, run_as: RunAs, places: &[&Path]) -> Result<RunAs, EmbeddedError> {
    match places.iter().find_map(|place| closed_ancestor(place, run_as)) {
        None => Ok(run_as),
        Some(closed) => Err(EmbeddedError::NotEnterable { user, closed }),
    }
}

/// The outermost directory above `path` that `run_as` may not pass through.
fn closed_ancestor(path: &Path, run_as: RunAs) -> Option<PathBuf> {
    let above: Vec<&Path> = path.ancestors().skip(1).collect();
    let closed = |dir: &&&Path| fs::metadata(dir).is_ok_and(|found| !may_pass(&found, run_as));
    above.iter().rev().find(closed).map(|dir| dir.to_path_buf())
}

fn may_pass(dir: &fs::Metadata, run_as: RunAs) -> bool {
    let shift = if dir.uid() == run_as.uid {
        6
    } else if dir.gid() == run_as.gid {
        3
    } else {
        0
    };
    dir.mode() >> shift & 1 == 1
}

fn name_of(uid: u32) -> String {
    let user = User::from_uid(Uid::from_raw(uid)).ok().flatten();
    user.map_or_else(|| uid.to_string(), |user| user.name)
}

fn foreign(pgdata: &Path, uid: u32) -> EmbeddedError {
    EmbeddedError::ForeignOwner { pgdata: pgdata.to_owned(), owner: name_of(uid) }
}
