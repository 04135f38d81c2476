//! The two logs of a data directory: who may read them, and how long they grow.
//!
//! Promises that only their owner reads them, for they hold statements and the values at fault in
//! them, and that the logs and what is kept of them stay within a few times [`BYTES_MAX`]. A log
//! stays the same file for as long as a server writes to it: its content is moved aside, not the
//! file.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::error::EmbeddedError;

/// A log longer than this is put aside; one old one is kept, of at most this length.
const BYTES_MAX: u64 = 10 << 20;

const OWNER_ONLY: u32 = 0o600;

/// Opens a log at its end. A log that others may read, as an earlier version left it, is closed to
/// them.
pub(super) fn append(path: &Path) -> Result<File, EmbeddedError> {
    bound(path);
    let opened = OpenOptions::new().create(true).append(true).mode(OWNER_ONLY).open(path);
    let log = opened.map_err(EmbeddedError::file("open", path))?;
    log.set_permissions(Permissions::from_mode(OWNER_ONLY)).map_err(EmbeddedError::file("protect", path))?;
    Ok(log)
}

/// Puts the end of a log aside and empties it, if it has become long. Its writers go on at its new
/// end. Lines that are written meanwhile may be lost: better than a disk that fills.
pub(super) fn bound(path: &Path) {
    let Ok(length) = fs::metadata(path).map(|found| found.len()) else { return };
    if length <= BYTES_MAX {
        return;
    }
    // On a full disk nothing can be put aside, and room is needed all the more.
    let _ = put_aside(path, length - BYTES_MAX);
    let _ = OpenOptions::new().write(true).open(path).and_then(|log| log.set_len(0));
}

fn put_aside(path: &Path, from: u64) -> io::Result<()> {
    let aside = aside(path);
    // A new file, because others may be able to read the old one.
    let _ = fs::remove_file(&aside);
    let mut log = File::open(path)?;
    log.seek(SeekFrom::Start(from))?;
    let mut kept = OpenOptions::new().create_new(true).write(true).mode(OWNER_ONLY).open(&aside)?;
    io::copy(&mut log.take(BYTES_MAX), &mut kept).map(drop)
}

fn aside(path: &Path) -> PathBuf {
    path.with_extension("log.1")
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn a_log_that_others_could_read_is_closed_to_them() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("postgres.log");
        fs::write(&path, "what was there\n").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();

        let mut log = append(&path).unwrap();
        log.write_all(b"more\n").unwrap();

        assert_eq!(mode(&path), OWNER_ONLY);
        assert_eq!(fs::read_to_string(&path).unwrap(), "what was there\nmore\n");
    }

    #[test]
    fn a_long_log_is_put_aside_under_its_writer_and_its_end_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("postgres.log");
        let mut log = append(&path).unwrap();
        log.write_all(&vec![b'x'; usize::try_from(BYTES_MAX).unwrap()]).unwrap();
        bound(&path);
        assert_eq!(fs::metadata(&path).unwrap().len(), BYTES_MAX, "a log within the limit is left alone");
        log.write_all(b"the end\n").unwrap();

        bound(&path);
        log.write_all(b"the beginning\n").unwrap();

        assert_eq!(fs::read_to_string(&path).unwrap(), "the beginning\n");
        let kept = fs::read(aside(&path)).unwrap();
        assert_eq!(u64::try_from(kept.len()).unwrap(), BYTES_MAX);
        assert!(kept.ends_with(b"the end\n"));
        assert_eq!((mode(&path), mode(&aside(&path))), (OWNER_ONLY, OWNER_ONLY));
    }
}
