//! What happened to one message, in as few lines as possible.

use super::checker::Finding;
use super::clock::Micros;
use super::history::{Edge, Event, Key, Record};

/// More records than this are cut out of the middle.
const LINES_MAX: usize = 60;

/// The records that name the message, and the faults between them.
pub(crate) fn write(history: &[Record], finding: &Finding) -> String {
    let began = history.first().map_or(0, |record| record.at);
    let title = format!("{}: {} {}", finding.column, subject(finding), finding.sentence);
    let Some(key) = finding.key else { return title };
    let group = finding.group.as_deref();
    let ops: Vec<(u32, u64)> = history.iter().filter_map(|record| op(record, key, group)).collect();
    let about = |record: &&Record| concerns(record, key, group, &ops);
    let named: Vec<&Record> = history.iter().filter(about).collect();
    let (Some(first), Some(last)) = (named.first(), named.last()) else { return title };
    // A fault a little before explains more than one long after.
    let (from, to) = (first.at.saturating_sub(1_000_000), last.at + 1_000_000);
    let around = |record: &&Record| {
        matches!(record.event, Event::Fault { .. } | Event::Phase { .. }) && (from..=to).contains(&record.at)
    };
    let mut records: Vec<&Record> = history.iter().filter(|it| about(it) || around(it)).collect();
    records.sort_by_key(|record| record.at);
    let mut lines: Vec<String> = records.iter().map(|record| line(record, began, key)).collect();
    if lines.len() > LINES_MAX {
        let cut = lines.len() - LINES_MAX;
        lines.splice(LINES_MAX / 2..LINES_MAX / 2 + cut, [format!("    … {cut} lines …")]);
    }
    format!("{title}\n{}", lines.join("\n"))
}

fn subject(finding: &Finding) -> String {
    match (&finding.key, &finding.group) {
        (Some(key), Some(group)) => format!("message {key} in group {group}"),
        (Some(key), None) => format!("message {key}"),
        (None, Some(group)) => format!("group {group}:"),
        (None, None) => String::new(),
    }
}

/// The call that names the message, if this record is one.
fn op(record: &Record, key: Key, group: Option<&str>) -> Option<(u32, u64)> {
    match &record.event {
        Event::Push { op, keys, .. } if keys.contains(key) => Some((record.by, *op)),
        Event::Settle { op, keys, group: there, .. } if keys.contains(key) && group.is_none_or(|it| it == there) => {
            Some((record.by, *op))
        }
        _ => None,
    }
}

fn concerns(record: &Record, key: Key, group: Option<&str>, ops: &[(u32, u64)]) -> bool {
    let of = |there: &str| group.is_none_or(|group| group == there);
    match &record.event {
        Event::Push { keys, .. } => keys.contains(key),
        Event::Delivered { keys, group, .. } | Event::Settle { keys, group, .. } => keys.contains(key) && of(group),
        Event::Pushed { op, keys, .. } | Event::Settled { op, keys, .. } => {
            keys.contains(key) && ops.contains(&(record.by, *op))
        }
        Event::Buried { key: there, group, .. } => *there == key && of(group),
        Event::Effect { key: there, .. } => *there == key,
        Event::Sought { group, .. } => of(group),
        _ => false,
    }
}

fn line(record: &Record, began: Micros, key: Key) -> String {
    #[expect(clippy::cast_precision_loss, reason = "milliseconds of a run")]
    let ms = record.at.saturating_sub(began) as f64 / 1000.0;
    let what = match &record.event {
        Event::Push { place, keys, .. } => {
            format!("pushes it to {}/{} (with {} in all)", place.queue, place.partition, keys.len())
        }
        Event::Pushed { outcome, .. } => format!("its push was answered: {outcome:?}"),
        Event::Delivered { place, lease, attempt, keys, began, .. } => {
            let waited = record.at.saturating_sub(*began) / 1000;
            let nth = keys.iter().position(|it| it == key).map_or(0, |n| n + 1);
            let (queue, partition) = (&place.queue, &place.partition);
            format!(
                "gets it from {queue}/{partition} ({nth} of {}), lease {lease}, attempt {attempt}, after {waited} ms",
                keys.len()
            )
        }
        Event::Settle { lease, status, .. } => format!("reports {status:?} under lease {lease}"),
        Event::Settled { outcome, .. } => format!("was answered: {outcome:?}"),
        Event::Sought { outcome, .. } => format!("moves the group back: {outcome:?}"),
        Event::Fault { kind, target, edge: Edge::Begin } => format!("  fault {kind} of {target} begins"),
        Event::Fault { kind, target, edge: Edge::End } => format!("  fault {kind} of {target} is over"),
        Event::Phase { phase } => format!("  {phase:?}"),
        other => format!("{other:?}"),
    };
    format!("  {ms:>12.1} ms  by {:>4}  {what}", record.by)
}
