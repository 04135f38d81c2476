//! Where data and binaries are kept by default.
//!
//! Knows the conventions of the platforms; reads no environment itself, so that every rule can be
//! tested.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The directories a program uses by default.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Places {
    /// Holds the cluster: must be kept.
    pub data_dir: PathBuf,
    /// Holds fetched binaries: may be deleted at any time.
    pub cache_dir: PathBuf,
}

impl Places {
    /// The convention of this platform: `/var/lib/reveille` and `/var/cache/reveille` for root, the
    /// user's own directories otherwise. `None` when an ordinary user has no home.
    ///
    /// Root gets no directory below its home, because the server runs as another user who may not
    /// enter it.
    pub fn by_convention(is_root: bool, environment: impl Fn(&str) -> Option<OsString>) -> Option<Self> {
        if is_root {
            return Some(Self { data_dir: "/var/lib/reveille".into(), cache_dir: "/var/cache/reveille".into() });
        }
        // Relative values are invalid by the XDG specification, and would depend on the working
        // directory.
        let absolute = |name: &str| environment(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let home = absolute("HOME");
        let below_home = |path: &str| home.as_ref().map(|home| home.join(path));
        let (data, cache) = if cfg!(target_os = "macos") {
            (below_home("Library/Application Support"), below_home("Library/Caches"))
        } else {
            (
                absolute("XDG_DATA_HOME").or_else(|| below_home(".local/share")),
                absolute("XDG_CACHE_HOME").or_else(|| below_home(".cache")),
            )
        };
        Some(Self { data_dir: own(&data?), cache_dir: own(&cache?) })
    }
}

fn own(base: &Path) -> PathBuf {
    base.join("reveille")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment<'a>(pairs: &'a [(&'a str, &'a str)]) -> impl Fn(&str) -> Option<OsString> + 'a {
        |name| pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| OsString::from(value))
    }

    #[test]
    fn root_never_gets_a_directory_below_its_home() {
        let places = Places::by_convention(true, environment(&[("HOME", "/root")])).unwrap();

        assert_eq!(places.data_dir, Path::new("/var/lib/reveille"));
        assert_eq!(places.cache_dir, Path::new("/var/cache/reveille"));
    }

    #[cfg(not(target_os = "macos"))]
    #[test]
    fn an_ordinary_user_gets_the_xdg_directories() {
        let xdg = [("HOME", "/home/ada"), ("XDG_DATA_HOME", "/data/ada"), ("XDG_CACHE_HOME", "relative")];

        let places = Places::by_convention(false, environment(&xdg)).unwrap();

        assert_eq!(places.data_dir, Path::new("/data/ada/reveille"));
        assert_eq!(places.cache_dir, Path::new("/home/ada/.cache/reveille"));
    }

    #[test]
    fn a_user_without_a_home_has_no_convention() {
        assert_eq!(Places::by_convention(false, environment(&[])), None);
    }
}
