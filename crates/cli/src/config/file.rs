//! The configuration file: where it is, and its settings.
//!
//! A file in the working directory is not read: a server must not depend on where it was started.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use toml::{Table, Value};

use super::fault::Faults;

/// The file below a configuration directory.
const USUAL: &str = "reveille/config.toml";

/// The file to read. A named file must exist, the default ones need not.
pub(super) fn choose(named: Option<&Path>, environment: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let named = named.map(Path::to_owned).or_else(|| environment("REVEILLE_CONFIG").map(PathBuf::from));
    if named.is_some() {
        return named;
    }
    let absolute = |name: &str| environment(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let below_home = if cfg!(target_os = "macos") { "Library/Application Support" } else { ".config" };
    let own = absolute("XDG_CONFIG_HOME").or_else(|| absolute("HOME").map(|home| home.join(below_home)));
    let usual = [own, Some(PathBuf::from("/etc"))];
    usual.into_iter().flatten().map(|dir| dir.join(USUAL)).find(|path| path.exists())
}

/// The settings of a file, as `(setting, text)`.
pub(super) fn read(path: &Path, faults: &mut Faults) -> Vec<(String, String)> {
    match fs::read_to_string(path) {
        Ok(text) => parse(&text, &path.display().to_string(), faults),
        Err(error) => {
            faults.add(format!("cannot read the configuration file {}: {error}", path.display()));
            Vec::new()
        }
    }
}

/// The settings of a text. `name` is for faults.
pub(super) fn parse(text: &str, name: &str, faults: &mut Faults) -> Vec<(String, String)> {
    match text.parse::<Table>() {
        Ok(table) => {
            let mut settings = Vec::new();
            flatten("", &table, &mut |key, value| match as_text(value) {
                Some(text) => settings.push((key, text)),
                None => faults.add(format!("{key} in {name} must be a text, a number, true or false")),
            });
            settings
        }
        Err(error) => {
            let line = error.span().map_or(1, |span| text[..span.start.min(text.len())].lines().count().max(1));
            faults.add(format!("{name} is not TOML, line {line}: {}", error.message().replace('\n', ", ")));
            Vec::new()
        }
    }
}

fn flatten(section: &str, table: &Table, each: &mut impl FnMut(String, &Value)) {
    for (name, value) in table {
        let key = if section.is_empty() { name.clone() } else { format!("{section}.{name}") };
        match value {
            Value::Table(inner) if section.is_empty() => flatten(&key, inner, each),
            value => each(key, value),
        }
    }
}

fn as_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Integer(number) => Some(number.to_string()),
        Value::Boolean(is) => Some(is.to_string()),
        Value::Float(_) | Value::Datetime(_) | Value::Array(_) | Value::Table(_) => None,
    }
}
