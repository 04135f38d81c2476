//! Four layers, one value for each setting, and its source.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;

use super::fault::{Faults, nearest};
use super::{DEFAULTS, file, other_names};
use crate::args::{Args, FLAGS};

/// Where a value came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Source {
    Default,
    File(PathBuf),
    Environment(String),
    Flag(&'static str),
}

impl Source {
    /// The layer's name, and which file, variable or flag it was.
    pub(crate) fn parts(&self) -> (&'static str, String) {
        match self {
            Self::Default => ("default", String::new()),
            Self::File(path) => ("file", path.display().to_string()),
            Self::Environment(name) => ("environment", name.clone()),
            Self::Flag(flag) => ("flag", (*flag).to_owned()),
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (layer, which) = self.parts();
        if which.is_empty() { f.write_str(layer) } else { write!(f, "{layer} {which}") }
    }
}

/// One setting with its effective value.
#[derive(Debug, Clone)]
pub(crate) struct Setting {
    pub(crate) key: String,
    pub(crate) text: String,
    pub(crate) source: Source,
}

impl Setting {
    /// The variables that can set it, the strongest first.
    pub(crate) fn variables(&self) -> Vec<String> {
        variables(&self.key)
    }

    /// The flag that can set it.
    pub(crate) fn flag(&self) -> Option<&'static str> {
        flag(&self.key)
    }
}

/// All settings with their effective values.
#[derive(Debug)]
pub(crate) struct Effective {
    pub(crate) settings: Vec<Setting>,
    pub(crate) file: Option<PathBuf>,
}

impl Effective {
    /// Lays each layer over the one before.
    pub(crate) fn gather(args: &Args, environment: impl Fn(&str) -> Option<OsString>, faults: &mut Faults) -> Self {
        let mut all = Self { settings: defaults(faults), file: None };
        all.file = file::choose(args.everywhere.config.as_deref(), &environment);
        if let Some(path) = all.file.clone() {
            for (key, text) in file::read(&path, faults) {
                if all.has(&key) {
                    all.set(&key, text, Source::File(path.clone()));
                } else {
                    faults.add(all.unknown(&key, &path.display().to_string()));
                }
            }
        }
        all.take_environment(environment, faults);
        for (key, text) in args.settings() {
            all.set(key, text, Source::Flag(flag(key).unwrap_or_default()));
        }
        all
    }

    pub(crate) fn get(&self, key: &str) -> Option<&Setting> {
        self.settings.iter().find(|setting| setting.key == key)
    }

    /// Variables with our prefix that set nothing, with the one that was probably meant. Not an
    /// error: a service called `reveille` in a Kubernetes namespace adds variables of that prefix
    /// to every container.
    pub(crate) fn slips(&self, names: &[String]) -> Vec<(String, String)> {
        let ours: Vec<String> = self.settings.iter().flat_map(Setting::variables).collect();
        let strange = names.iter().filter(|name| !ours.contains(name) && *name != "REVEILLE_CONFIG");
        let meant = |name: &String| nearest(name, ours.iter().map(String::as_str)).map(ToOwned::to_owned);
        strange.filter_map(|name| Some((name.clone(), meant(name)?))).collect()
    }

    fn take_environment(&mut self, environment: impl Fn(&str) -> Option<OsString>, faults: &mut Faults) {
        for setting in &mut self.settings {
            let set = variables(&setting.key).into_iter().find_map(|name| Some((environment(&name)?, name)));
            let Some((value, name)) = set else { continue };
            match value.into_string() {
                Ok(text) => {
                    (setting.text, setting.source) = (other_names::with_unit(&name, text), Source::Environment(name));
                }
                Err(_) => faults.add(format!("{name} in the environment is not UTF-8")),
            }
        }
    }

    fn has(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    fn set(&mut self, key: &str, text: String, source: Source) {
        if let Some(setting) = self.settings.iter_mut().find(|setting| setting.key == key) {
            (setting.text, setting.source) = (text, source);
        }
    }

    fn unknown(&self, key: &str, whence: &str) -> String {
        match nearest(key, self.settings.iter().map(|setting| setting.key.as_str())) {
            Some(meant) => format!("there is no setting {key} ({whence}); did you mean {meant}?"),
            None => format!("there is no setting {key} ({whence}); `reveille config default` lists all of them"),
        }
    }
}

fn defaults(faults: &mut Faults) -> Vec<Setting> {
    let settings = file::parse(DEFAULTS, "the built-in defaults", faults);
    settings.into_iter().map(|(key, text)| Setting { key, text, source: Source::Default }).collect()
}

/// Variables that do not follow the rule, because their names have other origins.
const NAMED_OTHERWISE: &[(&str, &[&str])] = &[
    ("client.server", &["REVEILLE_SERVER_URL"]),
    ("database.url", &["REVEILLE_DATABASE_URL", "DATABASE_URL"]),
    ("database.listen_url", &["REVEILLE_LISTEN_URL"]),
    ("jobs.notify", &["REVEILLE_NOTIFY"]),
    ("postgres.binaries", &["REVEILLE_PG_BIN"]),
    ("postgres.data_dir", &["REVEILLE_DATA_DIR"]),
    ("postgres.run_as", &["REVEILLE_PG_USER"]),
];

fn variables(key: &str) -> Vec<String> {
    let other = NAMED_OTHERWISE.iter().find(|(named, _)| *named == key);
    let mut names = other.map_or_else(
        || vec![format!("REVEILLE_{}", key.replace('.', "_").to_uppercase())],
        |(_, names)| names.iter().map(|name| (*name).to_owned()).collect(),
    );
    names.extend(other_names::variables(key).map(ToOwned::to_owned));
    names
}

fn flag(key: &str) -> Option<&'static str> {
    FLAGS.iter().find(|(named, _)| *named == key).map(|(_, flag)| *flag)
}
