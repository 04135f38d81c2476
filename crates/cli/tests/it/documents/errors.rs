//! `docs/errors.md` has every error of the code: read from the source, so that a new one is missed
//! at once.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

fn page() -> String {
    read(&Path::new(ROOT).join("docs/errors.md"))
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The files below a directory that end so, without their tests.
fn sources(directory: &str, ending: &str) -> Vec<String> {
    let mut open = vec![Path::new(ROOT).join(directory)];
    let mut files: Vec<PathBuf> = Vec::new();
    while let Some(next) = open.pop() {
        let entries = std::fs::read_dir(&next).unwrap_or_else(|error| panic!("{}: {error}", next.display()));
        let (directories, found): (Vec<PathBuf>, Vec<PathBuf>) =
            entries.map(|entry| entry.expect("it can be read").path()).partition(|path| path.is_dir());
        open.extend(directories);
        let tests = |path: &Path| path.file_name().is_some_and(|name| name == "tests.rs");
        files.extend(found.into_iter().filter(|path| path.extension().is_some_and(|is| is == ending) && !tests(path)));
    }
    let product = |text: String| text.split("#[cfg(test)]").next().unwrap_or_default().to_owned();
    files.iter().map(|path| product(read(path))).collect()
}

/// The words in quotes that follow this text, with nothing but spaces between.
fn quoted_after<'t>(text: &'t str, before: &'t str) -> impl Iterator<Item = &'t str> {
    text.split(before).skip(1).filter_map(|rest| rest.trim_start().strip_prefix('"')?.split('"').next())
}

/// What the page does not name in backticks.
fn missing<'w>(page: &str, words: impl IntoIterator<Item = &'w str>) -> BTreeSet<&'w str> {
    words.into_iter().filter(|word| !page.contains(&format!("`{word}`"))).collect()
}

fn assert_named<'w>(page: &str, words: impl IntoIterator<Item = &'w str>, at_least: usize) {
    let words: BTreeSet<&str> = words.into_iter().collect();
    assert!(words.len() >= at_least, "the search finds too little to be right: {words:?}");
    assert_eq!(missing(page, words), BTreeSet::new(), "docs/errors.md does not name these");
}

/// Codes are lower-case words; they stand behind their status, or behind `code:`.
#[test]
fn every_code_of_http_is_explained() {
    let sources = sources("crates/server/src", "rs").join("\n");
    let is_code = |word: &&str| !word.is_empty() && word.chars().all(|c| c.is_ascii_lowercase() || c == '_');
    let statuses = sources.split("StatusCode::").skip(1).filter_map(|rest| {
        let (name, behind) = rest.split_once(',')?;
        let is_name = name.chars().all(|c| c.is_ascii_uppercase() || c == '_');
        is_name.then(|| behind.trim_start().strip_prefix('"')?.split('"').next()).flatten()
    });
    let fields = quoted_after(&sources, "code:");
    let spelt = sources.split("\\\"code\\\":\\\"").skip(1).filter_map(|rest| rest.split('\\').next());

    assert_named(&page(), statuses.chain(fields).chain(spelt).filter(is_code), 35);
}

#[test]
fn every_reason_of_a_refused_transaction_is_explained() {
    let sources = sources("crates/server/src/api", "rs").join("\n");

    assert_named(&page(), quoted_after(&sources, "refused(").chain(quoted_after(&sources, "reason:")), 4);
}

/// The words in capitals that begin the lines of an enum, one step in.
fn variants(body: &str) -> Vec<&str> {
    let lines = body.lines().filter_map(|line| line.strip_prefix("    "));
    let words = lines.filter_map(|line| line.split(['(', ' ', ',']).next());
    words.filter(|word| word.starts_with(char::is_uppercase)).collect()
}

/// The public enums of errors that a file declares, each with its variants.
fn public_errors(source: &str) -> Vec<(&str, Vec<&str>)> {
    let declared = source.split("\npub enum ").skip(1).filter_map(|rest| rest.split_once(" {\n"));
    let errors = declared.filter(|(name, _)| name.ends_with("Error") || name.ends_with("Fault"));
    errors.map(|(name, body)| (name, variants(body.split("\n}").next().unwrap_or_default()))).collect()
}

#[test]
fn every_variant_of_a_public_error_is_explained_below_its_name() {
    let page = page();
    let crates = ["crates/reveille/src", "crates/server/src", "crates/embedded/src", "crates/duroxide/src"];
    let files: Vec<String> = crates.into_iter().flat_map(|directory| sources(directory, "rs")).collect();
    let errors: Vec<(&str, Vec<&str>)> = files.iter().flat_map(|file| public_errors(file)).collect();
    assert!(errors.len() >= 8, "the search finds too little to be right: {errors:?}");

    for (name, variants) in errors {
        let (_, section) = page.split_once(&format!("\n### `{name}`\n")).unwrap_or_else(|| panic!("no section {name}"));
        let section = section.split("\n#").next().unwrap_or_default();

        assert!(!variants.is_empty(), "{name}");
        assert_eq!(missing(section, variants), BTreeSet::new(), "docs/errors.md does not name these of {name}");
    }
}

#[test]
fn every_sqlstate_that_is_judged_is_explained() {
    let table = read(&Path::new(ROOT).join("crates/reveille/src/database/sqlstate.rs"));
    let table = table.split("#[cfg(test)]").next().unwrap_or_default();

    assert_named(&page(), quoted_after(table, "    ("), 25);
}

#[test]
fn every_condition_that_sql_functions_raise_is_explained() {
    let functions = sources("crates/reveille/sql/functions", "sql").join("\n");
    let raised = functions.split("errcode = '").skip(1).filter_map(|rest| rest.split('\'').next());

    assert_named(&page(), raised, 4);
}

#[test]
fn every_code_that_we_give_a_failed_job_is_explained() {
    let (rust, sql) =
        (sources("crates/reveille/src/jobs", "rs").join("\n"), sources("crates/reveille/sql/jobs", "sql"));
    let by_worker = quoted_after(&rust, "Outcome::retry(").chain(quoted_after(&rust, "Outcome::dead("));
    let by_claim = sql.iter().filter(|text| text.contains("'lease_expired'")).map(|_| "lease_expired");

    assert_named(&page(), by_worker.chain(by_claim), 6);
}
