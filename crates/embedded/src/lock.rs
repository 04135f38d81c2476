//! File locks that the kernel gives back when their holder dies.
//!
//! `flock` belongs to the open file, not to the process: it survives `fork` and `exec`, which is
//! what makes `alive.lock` a proof, and it is released when the last copy of the descriptor is
//! closed, also by `kill -9`.

use std::fs::{File, Metadata, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

/// Opens a lock file, made if it is not there.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).truncate(false).read(true).write(true).mode(0o600).open(path)
}

/// Waits until the lock is held exclusively.
pub(crate) fn exclusive(file: &File) -> io::Result<()> {
    uninterrupted(|| file.lock())
}

/// Waits until the lock is held in share.
pub(crate) fn shared(file: &File) -> io::Result<()> {
    uninterrupted(|| file.lock_shared())
}

/// `Ok(true)` when the lock is now held exclusively, `Ok(false)` when someone else has it.
pub(crate) fn try_exclusive(file: &File) -> io::Result<bool> {
    granted(|| file.try_lock())
}

/// `Ok(true)` when the lock is now held in share, `Ok(false)` when someone has it exclusively.
pub(crate) fn try_shared(file: &File) -> io::Result<bool> {
    granted(|| file.try_lock_shared())
}

/// Gives the lock back. Closing the file is not enough: a child that another thread is just
/// starting has a copy of it until its `exec`.
pub(crate) fn release(file: &File) {
    let _ = file.unlock();
}

/// Whether anybody holds the lock exclusively right now.
pub(crate) fn is_held(path: &Path) -> io::Result<bool> {
    let file = open(path)?;
    let is_free = try_shared(&file)?;
    release(&file);
    Ok(!is_free)
}

/// Whether a program holds the lock in share right now. Also true when a program gives up an
/// exclusive one meanwhile.
pub(crate) fn is_shared(path: &Path) -> io::Result<bool> {
    let file = open(path)?;
    let is_shared = !try_exclusive(&file)? && try_shared(&file)?;
    release(&file);
    Ok(is_shared)
}

/// Which file it is. A lock on a file that was deleted, or replaced by another of its name,
/// excludes no program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileId {
    device: u64,
    inode: u64,
}

impl FileId {
    pub(crate) fn of(file: &File) -> io::Result<Self> {
        file.metadata().map(Self::from)
    }

    pub(crate) fn at(path: &Path) -> io::Result<Self> {
        path.metadata().map(Self::from)
    }
}

impl From<Metadata> for FileId {
    fn from(found: Metadata) -> Self {
        Self { device: found.dev(), inode: found.ino() }
    }
}

fn granted(mut ask: impl FnMut() -> Result<(), TryLockError>) -> io::Result<bool> {
    uninterrupted(|| match ask() {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(error)) => Err(error),
    })
}

/// The kernel does not restart `flock` after every signal handler, and neither does std: without
/// this, a signal to the program would look like an answer about the lock.
fn uninterrupted<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match call() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            answer => return answer,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_is_not_an_answer_about_the_lock() {
        let mut calls = 0;

        let answer = granted(|| {
            calls += 1;
            if calls < 3 { Err(TryLockError::Error(io::ErrorKind::Interrupted.into())) } else { Ok(()) }
        });

        assert!(answer.unwrap());
        assert_eq!(calls, 3);
    }

    #[test]
    fn a_file_that_was_replaced_is_another_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.lock");
        let first = open(&path).unwrap();
        let same = FileId::of(&first).unwrap() == FileId::at(&path).unwrap();

        std::fs::remove_file(&path).unwrap();
        let _second = open(&path).unwrap();

        assert!(same);
        assert_ne!(FileId::of(&first).unwrap(), FileId::at(&path).unwrap());
    }
}
