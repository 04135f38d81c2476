//! `reveille config show`: each effective value and its source.

use serde_json::json;

use crate::config::{Config, Effective, Setting, masked};
use crate::exit::{Exit, Failure};
use crate::output;

pub(crate) fn show(json: bool, config: &Config, effective: &Effective) -> Result<Exit, Failure> {
    if json {
        let settings: Vec<_> = effective.settings.iter().map(|setting| as_json(setting, config)).collect();
        output::json(&json!({ "file": effective.file, "settings": settings }))?;
    } else {
        for line in as_table(config, effective) {
            output::line(&line)?;
        }
    }
    Ok(Exit::Done)
}

fn as_table(config: &Config, effective: &Effective) -> Vec<String> {
    let left: Vec<String> =
        effective.settings.iter().map(|setting| format!("{} = {:?}", setting.key, shown(setting, config))).collect();
    let width = left.iter().map(|text| text.chars().count()).max().unwrap_or(0);
    let lines = left.iter().zip(&effective.settings);
    lines.map(|(text, setting)| format!("{text:width$}  {}", setting.source)).collect()
}

fn as_json(setting: &Setting, config: &Config) -> serde_json::Value {
    let (source, which) = setting.source.parts();
    json!({
        "key": setting.key,
        "value": shown(setting, config),
        "source": source,
        "from": (!which.is_empty()).then_some(which),
        "environment": setting.variables(),
        "flag": setting.flag(),
    })
}

/// The value as it may be shown: without passwords, and with the directory that an empty data
/// directory means.
fn shown(setting: &Setting, config: &Config) -> String {
    match setting.key.as_str() {
        "database.url" | "database.listen_url" if !setting.text.is_empty() => masked(&setting.text),
        "messages.encryption_keys" if !setting.text.is_empty() => "***".to_owned(),
        "postgres.data_dir" if setting.text.is_empty() => config.private.usual_data_dir().unwrap_or_default(),
        _ => setting.text.clone(),
    }
}
