//! What a scenario found: rows for people, figures for machines.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::Context;
use serde_json::json;

use super::{machine, progress};

/// The result of one scenario.
#[derive(Debug)]
pub struct Report {
    scenario: &'static str,
    versions: String,
    rows: Vec<Row>,
    figures: BTreeMap<&'static str, f64>,
    words: String,
    failure: Option<String>,
}

#[derive(Debug)]
struct Row {
    what: String,
    value: f64,
    unit: &'static str,
}

impl Report {
    /// An empty one of this scenario, measured against these versions.
    pub fn new(scenario: &'static str, versions: String) -> Self {
        Self { scenario, versions, rows: Vec::new(), figures: BTreeMap::new(), words: String::new(), failure: None }
    }

    /// A line of the table. Printed at once as well, so that a run that fails later loses nothing.
    pub fn row(&mut self, what: impl Into<String>, value: f64, unit: &'static str) {
        let what = what.into();
        progress(&format!("{what}: {value:.3} {unit}"));
        self.rows.push(Row { what, value, unit });
    }

    /// A figure under its name; also a line of the table.
    pub fn figure(&mut self, name: &'static str, value: f64, unit: &'static str) {
        self.figures.insert(name, value);
        self.row(format!("`{name}`"), value, unit);
    }

    /// The versions it was measured against, once they are known.
    pub fn versions(&mut self, versions: String) {
        self.versions = versions;
    }

    /// The arguments that were typed after the scenario's name.
    pub fn command_words(&mut self, words: &str) {
        self.words = format!(" {words}");
    }

    /// The run broke a promise: it is shown all the same, and the program fails.
    pub fn fail(&mut self, why: String) {
        self.failure = Some(why);
    }

    /// Whether the program may end well.
    pub fn verdict(&self) -> anyhow::Result<()> {
        self.failure.as_ref().map_or(Ok(()), |why| Err(anyhow::anyhow!("{why}")))
    }

    /// The table, in Markdown.
    pub fn table(&self) -> String {
        let width = self.rows.iter().map(|row| row.what.chars().count()).max().unwrap_or(0);
        let line = |row: &Row| format!("| {:<width$} | {:>12} | {:<8} |", row.what, digits(row.value), row.unit);
        let lines: Vec<String> = self.rows.iter().map(line).collect();
        let rule = format!("|{}|{}:|{}|", "-".repeat(width + 2), "-".repeat(13), "-".repeat(10));
        format!("| {:<width$} | {:>12} | {:<8} |\n{rule}\n{}", self.scenario, "value", "unit", lines.join("\n"))
    }

    /// The last line of a run with `--json`.
    pub fn json_line(&self, quick: bool) -> String {
        json!({"scenario": self.scenario, "quick": quick, "figures": self.figures}).to_string()
    }

    /// Writes the result where results are kept.
    pub fn save(&self, quick: bool) -> anyhow::Result<PathBuf> {
        let results =
            Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).context("no root")?.join("bench/results");
        let path = results.join(format!("{}.md", self.scenario));
        let command = format!("cargo run --release --bin reveille-bench -- {}{} --save", self.scenario, self.words);
        let command = if quick { format!("{command} --quick") } else { command };
        let mut about = machine::description();
        about.push(self.versions.clone());
        let about: Vec<String> = about.iter().map(|line| format!("- {line}")).collect();
        let text =
            format!("# {}\n\n```sh\n{command}\n```\n\n{}\n\n{}\n", self.scenario, about.join("\n"), self.table());
        std::fs::write(&path, text)?;
        Ok(path)
    }
}

/// Three significant digits, and no false precision.
fn digits(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        size if size >= 1.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_json_line_has_the_promised_shape() {
        let mut report = Report::new("ground", "PostgreSQL 15".to_owned());
        report.figure("pipelined_vs_single", 9.5, "times");

        let line: serde_json::Value = serde_json::from_str(&report.json_line(true)).unwrap();

        assert_eq!(line, json!({"scenario": "ground", "quick": true, "figures": {"pipelined_vs_single": 9.5}}));
    }

    #[test]
    fn numbers_keep_three_digits() {
        assert_eq!([digits(12345.6), digits(12.34), digits(1.234), digits(0.1234)], ["12346", "12.3", "1.23", "0.123"]);
    }
}
