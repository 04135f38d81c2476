//! Which crate may use which: the picture of the design as two tables.
//!
//! Tests and examples may use any foreign crate and, of ours, what the crate itself may use, the
//! testkit and the private PostgreSQL. A package without a row is a fault, so a new crate is drawn
//! here before it is used.
//!
//! Next: [`manifest`], which reads a `Cargo.toml`.

mod manifest;

use super::Fault;
use crate::tree::{File, Tree};
use manifest::{Dependency, Manifest, Section};

const TESTKIT: &str = "reveille-testkit";
const CHAOS: &str = "reveille-chaos";
/// The example that tests and benches of the wake engine run on.
const OWN_TABLE: &str = "own-table";
/// What tests and examples of any crate may stand on.
const FOR_TESTS: &[&str] = &[TESTKIT, "reveille-embedded"];

/// One of our packages, and which of ours it may use.
struct Package {
    name: &'static str,
    uses: &'static [&'static str],
    /// The only foreign crates it may use, where that list is closed.
    only: Option<&'static [&'static str]>,
    publishes: bool,
}

const PACKAGES: &[Package] = &[
    Package { name: "reveille-wake", uses: &[], only: Some(&["fastrand", "tokio"]), publishes: true },
    Package { name: "reveille-embedded", uses: &[], only: None, publishes: true },
    Package { name: "reveille", uses: &["reveille-wake"], only: None, publishes: true },
    Package { name: "reveille-server", uses: &["reveille", "reveille-wake"], only: None, publishes: true },
    Package { name: "reveille-duroxide", uses: &["reveille", "reveille-wake"], only: None, publishes: true },
    Package {
        name: "reveille-cli",
        uses: &["reveille", "reveille-wake", "reveille-embedded", "reveille-server", "reveille-duroxide"],
        only: None,
        publishes: true,
    },
    Package { name: OWN_TABLE, uses: &["reveille", "reveille-wake"], only: None, publishes: false },
    Package {
        name: TESTKIT,
        uses: &["reveille", "reveille-wake", "reveille-embedded", "reveille-server", "reveille-duroxide", OWN_TABLE],
        only: None,
        publishes: false,
    },
    Package {
        name: CHAOS,
        uses: &["reveille", "reveille-embedded", "reveille-duroxide", TESTKIT],
        only: None,
        publishes: false,
    },
    Package {
        name: "reveille-bench",
        uses: &[
            "reveille",
            "reveille-wake",
            "reveille-embedded",
            "reveille-server",
            "reveille-duroxide",
            TESTKIT,
            CHAOS,
        ],
        only: None,
        publishes: false,
    },
    Package { name: "xtask", uses: &[], only: None, publishes: false },
];

/// Foreign crates that shape a crate, and the packages that may use them.
struct Shaping {
    names: &'static [&'static str],
    users: &'static [&'static str],
}

const SHAPING: &[Shaping] = &[
    Shaping {
        names: &["tokio", "tokio-util"],
        users: &[
            "reveille-wake",
            "reveille",
            "reveille-server",
            "reveille-duroxide",
            "reveille-cli",
            OWN_TABLE,
            TESTKIT,
            CHAOS,
            "reveille-bench",
        ],
    },
    Shaping {
        names: &["tokio-postgres", "tokio-postgres-rustls", "deadpool", "deadpool-postgres"],
        users: &["reveille", "reveille-duroxide", OWN_TABLE, TESTKIT, CHAOS, "reveille-bench"],
    },
    Shaping { names: &["axum"], users: &["reveille-server", "reveille-cli", TESTKIT, "reveille-bench"] },
    Shaping { names: &["clap"], users: &["reveille-cli", CHAOS, "reveille-bench"] },
    Shaping { names: &["duroxide"], users: &["reveille-duroxide", "reveille-cli", TESTKIT, CHAOS, "reveille-bench"] },
];

pub(super) fn check(tree: &Tree) -> Vec<Fault> {
    let workspace = tree.file("Cargo.toml").map_or("", |file| &file.text);
    let members = tree.files().filter(|file| is_member(&file.path));
    members.flat_map(|file| judge(workspace, file)).collect()
}

/// `bench/peers` is a workspace of its own, for crates of peers.
fn is_member(path: &str) -> bool {
    let Some(directory) = path.strip_suffix("/Cargo.toml") else { return false };
    matches!(directory, "xtask" | "bench" | "chaos" | "examples/own_table")
        || directory.strip_prefix("crates/").is_some_and(|name| !name.contains('/'))
}

fn judge(workspace: &str, file: &File) -> Vec<Fault> {
    let manifest = match Manifest::parse(workspace, &file.text) {
        Ok(manifest) => manifest,
        Err(why) => return vec![Fault::new(&*file.path, 1, format!("cannot be read as a manifest: {why}; mend it"))],
    };
    let mut found: Vec<(usize, String)> = not_inherited(&manifest);
    match PACKAGES.iter().find(|package| package.name == manifest.name) {
        Some(package) => {
            found.extend(wrongly_published(package, &manifest));
            found.extend(manifest.dependencies.iter().filter_map(|dependency| wrong_edge(package, dependency)));
        }
        None => found.push((1, format!("the package {} has no row in the table of crates; add one", manifest.name))),
    }
    found.into_iter().map(|(line, sentence)| Fault::new(&*file.path, line, sentence)).collect()
}

fn not_inherited(manifest: &Manifest) -> Vec<(usize, String)> {
    let fields = manifest
        .own_settings
        .iter()
        .map(|name| (1, format!("sets {name} by itself, so crates drift apart; write {name}.workspace = true")));
    let dependencies = manifest.dependencies.iter().filter(|dependency| !dependency.inherited).map(|dependency| {
        let name = &dependency.alias;
        (
            dependency.line,
            format!("gives {name} a version of its own, so two may be built; write {name}.workspace = true"),
        )
    });
    fields.chain(dependencies).collect()
}

fn wrongly_published(package: &Package, manifest: &Manifest) -> Option<(usize, String)> {
    let name = package.name;
    match (package.publishes, manifest.publishes) {
        (false, true) => Some((1, format!("{name} is for this repository only; write publish = false"))),
        (true, false) => Some((1, format!("{name} is for users; remove publish = false"))),
        _ => None,
    }
}

fn wrong_edge(package: &Package, dependency: &Dependency) -> Option<(usize, String)> {
    let name = dependency.name.as_str();
    let allowed = match PACKAGES.iter().find(|ours| ours.name == name) {
        Some(_) => package.uses.contains(&name) || (dependency.section == Section::Dev && FOR_TESTS.contains(&name)),
        None => dependency.is_for_tests() || may_use_foreign(package, name),
    };
    (!allowed).then(|| {
        let sentence = format!(
            "{} may not use {name}: the design keeps them apart; move the code to the crate that may, or change the \
             design and the table of crates",
            package.name
        );
        (dependency.line, sentence)
    })
}

fn may_use_foreign(package: &Package, name: &str) -> bool {
    let listed = package.only.is_none_or(|only| only.contains(&name));
    let shaping = SHAPING.iter().find(|shaping| shaping.names.contains(&name));
    listed && shaping.is_none_or(|shaping| shaping.users.contains(&package.name))
}

#[cfg(test)]
mod tests;
