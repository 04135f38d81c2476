//! File locks that the kernel gives back when their holder dies.
//!
//! `flock` belongs to the open file, not to the process: it survives `fork` and `exec`, which is what makes `alive.lock`
//! a proof, and it is released when the last copy of the descriptor is closed, also by `kill -9`.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Opens a lock file, made if it is not there.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).truncate(false).read(true).write(true).mode(0o600).open(path)
}

/// `Ok(true)` when the lock is now held exclusively, `Ok(false)` when someone else has it.
pub(crate) fn try_exclusive(file: &File) -> io::Result<bool> {
    granted(file.try_lock())
}

/// `Ok(true)` when the lock is now held in share, `Ok(false)` when someone has it exclusively.
pub(crate) fn try_shared(file: &File) -> io::Result<bool> {
    granted(file.try_lock_shared())
}

/// Whether anybody holds the lock exclusively right now.
pub(crate) fn is_held(path: &Path) -> io::Result<bool> {
    Ok(!try_shared(&open(path)?)?)
}

/// Whether somebody holds the lock in share right now.
pub(crate) fn is_shared(path: &Path) -> io::Result<bool> {
    let file = open(path)?;
    Ok(!try_exclusive(&file)? && try_shared(&file)?)
}

fn granted(answer: Result<(), TryLockError>) -> io::Result<bool> {
    match answer {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(error)) => Err(error),
    }
}
