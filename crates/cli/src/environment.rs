//! The one place of this program that reads the environment.

use std::ffi::OsString;

/// A variable, unless it is unset or empty: `REVEILLE_X=` in a shell or a compose file means "not
/// set".
#[expect(clippy::disallowed_methods, reason = "the command line is where the environment comes in")]
pub(crate) fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

/// The names of all variables that begin with our prefix.
#[expect(clippy::disallowed_methods, reason = "the command line is where the environment comes in")]
pub(crate) fn our_names() -> Vec<String> {
    let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    names.filter(|name| name.starts_with("REVEILLE_")).collect()
}
