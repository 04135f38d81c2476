//! What a `Cargo.toml` says about its package, as far as the crate edges need it.

use toml::de::{DeTable, DeValue};

use crate::reading::words::line_of;

/// Package fields that every crate takes from the workspace.
const SHARED_FIELDS: &[&str] = &["edition", "rust-version", "license"];

/// When a dependency is built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Section {
    Normal,
    Build,
    Dev,
}

const SECTIONS: &[(&str, Section)] =
    &[("dependencies", Section::Normal), ("build-dependencies", Section::Build), ("dev-dependencies", Section::Dev)];

/// One entry of a dependency table.
#[derive(Debug)]
pub(super) struct Dependency {
    /// The name of the package, also where the workspace renames it.
    pub(super) name: String,
    /// The name this manifest uses.
    pub(super) alias: String,
    pub(super) section: Section,
    pub(super) line: usize,
    /// Whether version and source come from the workspace.
    pub(super) inherited: bool,
    /// The condition under which it is built, such as `cfg(unix)`.
    condition: Option<String>,
}

impl Dependency {
    /// Whether no user ever builds it: a dev-dependency, or shuttle behind the flag that only its
    /// tests set.
    pub(super) fn is_for_tests(&self) -> bool {
        let behind_flag = self.name == "shuttle" && self.condition.as_deref() == Some("cfg(shuttle)");
        self.section == Section::Dev || behind_flag
    }
}

/// The manifest of one of our packages.
#[derive(Debug)]
pub(super) struct Manifest {
    pub(super) name: String,
    pub(super) publishes: bool,
    /// Settings that should come from the workspace and do not.
    pub(super) own_settings: Vec<&'static str>,
    pub(super) dependencies: Vec<Dependency>,
}

impl Manifest {
    /// Reads a manifest; `workspace` is the text of the root manifest, which may rename
    /// dependencies.
    pub(super) fn parse(workspace: &str, text: &str) -> Result<Self, String> {
        let workspace = DeTable::parse(workspace).map_err(|error| format!("the workspace: {}", error.message()))?;
        let document = DeTable::parse(text).map_err(|error| error.message().to_owned())?;
        let document = document.get_ref();
        let package = table(document, "package").ok_or("it has no [package]")?;
        let name = package.get("name").and_then(|name| name.get_ref().as_str()).ok_or("it has no package name")?;

        let fields = SHARED_FIELDS.iter().copied().filter(|field| !inherits(table(package, field)));
        let lints = (!inherits(table(document, "lints"))).then_some("lints");
        let shared = table(workspace.get_ref(), "workspace").and_then(|table| self::table(table, "dependencies"));
        Ok(Self {
            name: name.to_owned(),
            publishes: package.get("publish").and_then(|publish| publish.get_ref().as_bool()) != Some(false),
            own_settings: fields.chain(lints).collect(),
            dependencies: dependencies(text, document, shared),
        })
    }
}

/// Every dependency, also those of one platform only.
fn dependencies(text: &str, document: &DeTable<'_>, shared: Option<&DeTable<'_>>) -> Vec<Dependency> {
    let targets = table(document, "target").into_iter().flatten();
    let targets = targets.filter_map(|(name, target)| Some((Some(name.get_ref()), target.get_ref().as_table()?)));
    let mut dependencies = Vec::new();
    for (condition, place) in [(None, document)].into_iter().chain(targets) {
        for &(title, section) in SECTIONS {
            for (alias, value) in table(place, title).into_iter().flatten() {
                let own = value.get_ref().as_table();
                let from_workspace = shared.and_then(|shared| table(shared, alias.get_ref()));
                let name = package_name(own).or_else(|| package_name(from_workspace)).unwrap_or(alias.get_ref());
                dependencies.push(Dependency {
                    name: name.to_owned(),
                    alias: alias.get_ref().to_string(),
                    section,
                    line: line_of(text, alias.span().start),
                    inherited: inherits(own),
                    condition: condition.map(ToString::to_string),
                });
            }
        }
    }
    dependencies
}

fn table<'a, 'i>(parent: &'a DeTable<'i>, name: &str) -> Option<&'a DeTable<'i>> {
    parent.get(name).and_then(|value| value.get_ref().as_table())
}

fn inherits(table: Option<&DeTable<'_>>) -> bool {
    table
        .and_then(|table| table.get("workspace"))
        .is_some_and(|value| matches!(value.get_ref(), DeValue::Boolean(true)))
}

fn package_name<'a>(dependency: Option<&'a DeTable<'_>>) -> Option<&'a str> {
    dependency.and_then(|table| table.get("package")).and_then(|name| name.get_ref().as_str())
}
