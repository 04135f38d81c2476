//! The repository as a value: every file with its path and text.
//!
//! Owns the only reading of the disk. Promises that checks see what a commit would hold: every file
//! that no `.gitignore` of the tree leaves out, as it is on disk now. Needs no git, which an
//! unpacked archive and a new machine do not have. Files that are no text, or are too large to be
//! written by hand, are known by their path only.
//!
//! Next: [`crate::tidy`].

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use ignore::WalkBuilder;

/// Nothing written by hand is longer; lock files and captured results beyond it are not worth the
/// scanning.
const LONGEST_TEXT_BYTES: usize = 1024 * 1024;

/// A text file; `path` is relative to the root and separated by `/`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct File {
    pub(crate) path: String,
    pub(crate) text: String,
}

impl File {
    /// What follows the last dot of its name; nothing for a name without one.
    pub(crate) fn extension(&self) -> &str {
        Path::new(&self.path).extension().and_then(|extension| extension.to_str()).unwrap_or_default()
    }
}

/// The files of a repository, in the order of their paths.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    files: Vec<File>,
    unread: Vec<String>,
}

impl Tree {
    /// Reads the tree that the current directory belongs to.
    pub(crate) fn of_this_repository() -> anyhow::Result<Self> {
        Self::below(&root()?)
    }

    /// Reads the tree whose root is `root`.
    pub(crate) fn below(root: &Path) -> anyhow::Result<Self> {
        let mut paths = listed(root)?;
        paths.sort_unstable();

        let mut tree = Self::default();
        for path in paths {
            let on_disk = root.join(&path);
            // A link may lead to a directory, or nowhere.
            match on_disk.metadata() {
                Ok(found) if found.is_file() => tree.add(&path, &on_disk)?,
                Ok(_) => tree.unread.push(path),
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
        self.files().filter(move |file| file.extension() == extension)
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

/// The root of the tree that the current directory belongs to: that of the nearest `Cargo.lock`
/// above it.
pub(crate) fn root() -> anyhow::Result<PathBuf> {
    let here = std::env::current_dir().context("could not find the current directory")?;
    let root = here.ancestors().find(|directory| directory.join("Cargo.lock").is_file());
    let root = root.with_context(|| format!("no Cargo.lock in {} or above it", here.display()))?;
    Ok(root.to_owned())
}

/// Every path below `root` that is no directory and is not ignored, relative to it and separated by
/// `/`.
fn listed(root: &Path) -> anyhow::Result<Vec<String>> {
    let mut walk = WalkBuilder::new(root);
    // Only the tree's own rules: what else this machine ignores must not decide what is checked.
    walk.hidden(false).ignore(false).parents(false).git_global(false).git_exclude(false).require_git(false);
    walk.filter_entry(|entry| entry.file_name() != ".git");
    let mut paths = Vec::new();
    for entry in walk.build() {
        let entry = entry.context("could not walk the tree")?;
        if entry.file_type().is_none_or(|kind| kind.is_dir()) {
            continue;
        }
        let path = entry.path().strip_prefix(root).context("a path lies outside of the tree")?;
        let path = path.to_str().with_context(|| format!("{} is not UTF-8", path.display()))?;
        paths.push(path.replace(std::path::MAIN_SEPARATOR, "/"));
    }
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree_with(files: &[(&str, &[u8])]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (path, bytes) in files {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, bytes).unwrap();
        }
        root
    }

    #[test]
    fn new_files_are_read_and_ignored_ones_are_not() {
        let root = tree_with(&[
            (".gitignore", b"/target\n*.pyc\n"),
            (".ci/run", b"a"),
            ("src/a.rs", b"a"),
            ("src/target/c.rs", b"c"),
            ("target/b.rs", b"b"),
            ("tests/x.pyc", b"x"),
        ]);

        let tree = Tree::below(root.path()).unwrap();

        assert_eq!(tree.paths().collect::<Vec<_>>(), [".ci/run", ".gitignore", "src/a.rs", "src/target/c.rs"]);
    }

    /// In a clone `.git` is a directory, in another work tree a file; in an archive there is none.
    #[test]
    fn what_git_keeps_for_itself_is_not_part_of_the_tree() {
        for git in [".git", ".git/config"] {
            let root = tree_with(&[(git, b"its own"), ("a.rs", b"a")]);

            let tree = Tree::below(root.path()).unwrap();

            assert_eq!(tree.paths().collect::<Vec<_>>(), ["a.rs"], "{git}");
        }
    }

    #[test]
    fn files_that_are_no_text_or_huge_are_known_by_path_only() {
        let huge = vec![b'x'; LONGEST_TEXT_BYTES + 1];
        let root = tree_with(&[("nul", b"a\0b"), ("latin", b"\xe9"), ("huge", &huge), ("text", b"a")]);

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
