//! The tables of `docs/operate.md` agree with the program; `errors` checks `docs/errors.md`.

mod errors;

use std::collections::BTreeMap;

use crate::support::Home;

const DOCUMENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/operate.md");

/// The rows whose first cell is a setting: key, then the cells after it.
fn rows(document: &str) -> BTreeMap<String, Vec<String>> {
    let cells = |line: &str| line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect::<Vec<_>>();
    let rows = document.lines().filter(|line| line.starts_with("| `")).map(cells);
    let settings = rows.filter(|cells| cells.len() == 5 && cells[0].contains('.'));
    settings.map(|cells| (cells[0].trim_matches('`').to_owned(), cells[1..].to_vec())).collect()
}

fn quoted<'a>(words: impl Iterator<Item = &'a str>) -> String {
    words.map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")
}

#[tokio::test]
async fn every_setting_is_documented_with_its_variable_flag_and_default() {
    let home = Home::new();
    let shown = home.run(&["config", "show", "--json"]).await.json();
    let defaults: toml::Table = home.run(&["config", "default"]).await.stdout.parse().unwrap();

    let expected = shown["settings"].as_array().unwrap().iter().map(|setting| {
        let key = setting["key"].as_str().unwrap();
        let (section, name) = key.split_once('.').unwrap();
        let default = match &defaults[section][name] {
            toml::Value::String(text) => text.clone(),
            toml::Value::Integer(number) => number.to_string(),
            toml::Value::Boolean(is) => is.to_string(),
            other => panic!("{key} is {other:?}"),
        };
        let environment = quoted(setting["environment"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()));
        let flag = setting["flag"].as_str().map_or_else(|| "–".to_owned(), |flag| format!("`{flag}`"));
        let default = if default.is_empty() { "empty".to_owned() } else { format!("`{default}`") };
        (key.to_owned(), vec![environment, flag, default])
    });
    let expected: BTreeMap<String, Vec<String>> = expected.collect();

    let document = std::fs::read_to_string(DOCUMENT).unwrap();
    let found = rows(&document).into_iter().map(|(key, cells)| (key, cells[..3].to_vec()));
    assert_eq!(found.collect::<BTreeMap<_, _>>(), expected);
}

#[tokio::test]
async fn every_finding_of_the_doctor_is_documented() {
    let db = reveille_testkit::TestDatabase::new().await;
    let seen = Home::new().run(&["doctor", "--json", "--database-url", &db.url()]).await.json();
    let document = std::fs::read_to_string(DOCUMENT).unwrap();

    for finding in seen["findings"].as_array().unwrap() {
        let row = format!("| `{}` |", finding["name"].as_str().unwrap());
        assert!(document.contains(&row), "{row}");
    }
}

#[test]
fn every_metric_of_the_production_guide_exists() {
    let read = |path: &str| std::fs::read_to_string(format!("{}/../../{path}", env!("CARGO_MANIFEST_DIR"))).unwrap();
    let (guide, page) = (read("docs/production.md"), read("crates/server/src/api/metrics.rs"));
    let is_metric = |code: &&str| code.ends_with("_total") || code.contains("{state=");
    let named = guide.split('`').filter(is_metric).map(|code| code.split('{').next().unwrap_or_default());
    let is_plain = |name: &&str| name.chars().all(|c| c.is_ascii_lowercase() || c == '_');
    let metrics: Vec<&str> = named.filter(is_plain).collect();

    assert!(metrics.len() > 5, "{metrics:?}");
    for metric in metrics {
        assert!(page.contains(&format!("\"{metric}\"")), "docs/production.md names {metric}, which no server has");
    }
}
