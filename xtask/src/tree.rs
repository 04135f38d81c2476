//! The repository as a value: every file with its path and text.
//!
//! Owns the only reading of the disk. Promises that checks see what a commit would hold: tracked files and new ones
//! that are not ignored, as they are on disk now. Files that are no text, or are too large to be written by hand, are
//! known by their path only.
//!
//! Next: [`crate::tidy`].

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, ensure};

/// Nothing written by hand is longer; lock files and captured results beyond it are not worth the scanning.
const LONGEST_TEXT_BYTES: usize = 1024 * 1024;

/// A text file; `path` is relative to the root and separated by `/`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct File {
    pub(crate) path: String,
    pub(crate) text: String,
}

/// The files of a repository, in the order of their paths.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    files: Vec<File>,
    unread: Vec<String>,
}

impl Tree {
    /// Reads the work tree that the current directory belongs to.
    pub(crate) fn of_this_repository() -> anyhow::Result<Self> {
        let top = git(Path::new("."), &["rev-parse", "--show-toplevel"])?;
        Self::below(Path::new(top.trim_end()))
    }

    /// Reads the work tree whose root is `root`.
    pub(crate) fn below(root: &Path) -> anyhow::Result<Self> {
        let listed = git(root, &["ls-files", "-z", "--cached", "--others", "--exclude-standard"])?;
        let mut paths: Vec<&str> = listed.split_terminator('\0').collect();
        paths.sort_unstable();
        paths.dedup();

        let mut tree = Self::default();
        for path in paths {
            let on_disk = root.join(path);
            // A tracked file may be gone from the disk, and a link may lead to a directory.
            match on_disk.metadata() {
                Ok(found) if found.is_file() => tree.add(path, &on_disk)?,
                Ok(_) => tree.unread.push(path.to_owned()),
                Err(_) => {}
            }
        }
        Ok(tree)
    }

    /// A tree made up from paths and texts.
    #[cfg(test)]
    pub(crate) fn of(files: &[(&str, &str)]) -> Self {
        let mut files: Vec<File> =
            files.iter().map(|&(path, text)| File { path: path.to_owned(), text: text.to_owned() }).collect();
        files.sort_by(|left, right| left.path.cmp(&right.path));
        Self { files, unread: Vec::new() }
    }

    /// Every text file.
    pub(crate) fn files(&self) -> impl Iterator<Item = &File> {
        self.files.iter()
    }

    /// The text files whose path ends with `.` and this extension.
    pub(crate) fn with_extension<'a>(&'a self, extension: &'a str) -> impl Iterator<Item = &'a File> {
        self.files().filter(move |file| Path::new(&file.path).extension().is_some_and(|found| found == extension))
    }

    /// The text file at exactly this path.
    pub(crate) fn file(&self, path: &str) -> Option<&File> {
        self.files().find(|file| file.path == path)
    }

    /// Every path, also of files that were not read.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &str> {
        self.files().map(|file| file.path.as_str()).chain(self.unread.iter().map(String::as_str))
    }

    /// Whether a file or a directory has this path.
    pub(crate) fn has(&self, path: &str) -> bool {
        self.paths().any(|known| known.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/')))
    }

    fn add(&mut self, path: &str, on_disk: &Path) -> anyhow::Result<()> {
        let bytes = std::fs::read(on_disk).with_context(|| format!("could not read {}", on_disk.display()))?;
        let is_text = bytes.len() <= LONGEST_TEXT_BYTES && !bytes.contains(&0);
        match String::from_utf8(bytes) {
            Ok(text) if is_text => self.files.push(File { path: path.to_owned(), text }),
            _ => self.unread.push(path.to_owned()),
        }
        Ok(())
    }
}

fn git(directory: &Path, arguments: &[&str]) -> anyhow::Result<String> {
    let mut git = Command::new("git");
    // Inside a git hook these point at the repository of the hook, whatever the directory.
    for variable in ["GIT_DIR", "GIT_INDEX_FILE", "GIT_WORK_TREE", "GIT_PREFIX"] {
        git.env_remove(variable);
    }
    let output = git.arg("-C").arg(directory).args(arguments).output().context("could not run git")?;
    ensure!(output.status.success(), "git {arguments:?} failed: {}", String::from_utf8_lossy(&output.stderr).trim());
    String::from_utf8(output.stdout).context("git named a path that is not UTF-8")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn repository_with(files: &[(&str, &[u8])]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        git(root.path(), &["init", "--quiet"]).unwrap();
        for (path, bytes) in files {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, bytes).unwrap();
        }
        root
    }

    #[test]
    fn new_files_are_read_and_ignored_ones_are_not() {
        let root = repository_with(&[(".gitignore", b"/target\n"), ("src/a.rs", b"a"), ("target/b.rs", b"b")]);

        let tree = Tree::below(root.path()).unwrap();

        assert_eq!(tree.paths().collect::<Vec<_>>(), [".gitignore", "src/a.rs"]);
    }

    #[test]
    fn a_tracked_file_that_was_deleted_is_not_part_of_the_tree() {
        let root = repository_with(&[("a.rs", b"a"), ("b.rs", b"b")]);
        git(root.path(), &["add", "."]).unwrap();
        std::fs::remove_file(root.path().join("a.rs")).unwrap();

        let tree = Tree::below(root.path()).unwrap();

        assert_eq!(tree.paths().collect::<Vec<_>>(), ["b.rs"]);
    }

    #[test]
    fn files_that_are_no_text_or_huge_are_known_by_path_only() {
        let huge = vec![b'x'; LONGEST_TEXT_BYTES + 1];
        let root = repository_with(&[("nul", b"a\0b"), ("latin", b"\xe9"), ("huge", &huge), ("text", b"a")]);

        let tree = Tree::below(root.path()).unwrap();

        assert_eq!(tree.files().map(|file| file.path.as_str()).collect::<Vec<_>>(), ["text"]);
        assert!(tree.has("nul") && tree.has("latin") && tree.has("huge"));
    }

    #[test]
    fn a_directory_exists_because_of_its_files() {
        let tree = Tree::of(&[("crates/wake/src/lib.rs", "")]);

        assert!(tree.has("crates/wake"));
        assert!(!tree.has("crates/wa"));
    }
}
