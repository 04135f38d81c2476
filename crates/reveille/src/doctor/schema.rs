//! Whether the schema fits this program, and what a commit is worth.

use super::finding::{Finding, Verdict};
use crate::database::durability::Durability;
use crate::database::migrate::status::SchemaStatus;
use crate::database::warning::Warning;

pub(super) fn judge(status: &SchemaStatus) -> Finding {
    if let Err(error) = status.past_is_ours().and_then(|()| status.usable()) {
        return Finding::from_text("schema", Verdict::Fail, &error.to_string(), ": ");
    }
    let newer = if status.found > status.known { ", one newer than this program" } else { "" };
    Finding::ok("schema", format!("schema {} is at version {}{newer}", status.schema, status.found))
}

pub(super) fn judge_durability(durability: &Durability) -> Vec<Finding> {
    let warnings = durability.warnings();
    if warnings.is_empty() {
        return vec![Finding::ok("durability", "what is acknowledged survives a crash")];
    }
    let finding = |warning: &Warning| Finding::from_text("durability", Verdict::Warn, &warning.to_string(), "; ");
    warnings.iter().map(finding).collect()
}
