//! Jobs and their queues, for people and for programs.

use std::time::Duration;

use reveille::jobs::{DeadJob, Explanation, QueueState};
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::table::{Table, printable};

pub(super) fn queues(queues: &[QueueState]) -> String {
    let mut table = Table::new(["QUEUE", "READY", "SCHEDULED", "RUNNING", "OLDEST READY", "STATE"]);
    for queue in queues {
        let state = [(queue.paused, "paused"), (queue.quiet, "quiet")];
        let state: Vec<&str> = state.into_iter().filter_map(|(is, word)| is.then_some(word)).collect();
        table.row([
            queue.name.clone(),
            queue.ready.to_string(),
            queue.scheduled.to_string(),
            queue.running.to_string(),
            queue.age.map(ago).unwrap_or_default(),
            state.join(", "),
        ]);
    }
    table.text()
}

pub(super) fn queues_json(queues: &[QueueState]) -> String {
    let queue = |queue: &QueueState| {
        json!({
            "queue": queue.name,
            "ready": queue.ready,
            "scheduled": queue.scheduled,
            "running": queue.running,
            "oldest_ready_s": queue.age.map(|age| age.as_secs_f64()),
            "paused": queue.paused,
            "quiet": queue.quiet,
        })
    };
    json!({ "queues": queues.iter().map(queue).collect::<Vec<Value>>() }).to_string()
}

pub(super) fn dead(jobs: &[DeadJob]) -> String {
    let mut table = Table::new(["ID", "QUEUE", "KIND", "ATTEMPTS", "DEAD FOR", "CODE", "REASON", "ARGUMENTS"]);
    for job in jobs {
        table.row([
            job.id.to_string(),
            job.queue.clone(),
            job.kind.clone(),
            job.attempt.to_string(),
            ago(job.ago),
            job.code.clone(),
            job.reason.clone(),
            String::from_utf8_lossy(&job.args).into_owned(),
        ]);
    }
    table.text()
}

#[derive(Debug, Serialize)]
struct Dead<'j> {
    id: i64,
    queue: &'j str,
    kind: &'j str,
    attempts: i16,
    ago_s: f64,
    code: &'j str,
    reason: &'j str,
    args: Option<&'j RawValue>,
}

pub(super) fn dead_json(jobs: &[DeadJob]) -> String {
    text(&jobs.iter().map(Dead::of).collect::<Vec<Dead<'_>>>())
}

impl<'j> Dead<'j> {
    fn of(job: &'j DeadJob) -> Self {
        Self {
            id: job.id.0,
            queue: &job.queue,
            kind: &job.kind,
            attempts: job.attempt,
            ago_s: job.ago.as_secs_f64(),
            code: &job.code,
            reason: &job.reason,
            args: raw(&job.args),
        }
    }
}

pub(super) fn job(job: &Explanation) -> String {
    let mut table = Table::new(["FIELD", "VALUE"]);
    let json = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let fields = [
        ("kind", Some(job.kind.clone())),
        ("queue", Some(if job.paused { format!("{} (paused)", job.queue) } else { job.queue.clone() })),
        ("priority", Some(job.priority.to_string())),
        ("attempts", Some(format!("{} of {}", job.attempt, job.max_attempts))),
        ("enqueued", Some(format!("{} ago", ago(job.age)))),
        ("worker", job.worker.clone()),
        ("arguments", Some(json(&job.args))),
        ("tags", (!job.tags.is_empty()).then(|| job.tags.join(", "))),
        ("metadata", job.metadata.as_deref().map(json)),
        ("progress", job.progress.as_deref().map(json)),
        ("result", job.result.as_deref().map(json)),
    ];
    for (name, value) in fields {
        if let Some(value) = value {
            table.row([name.to_owned(), value]);
        }
    }
    let head = format!("job {} is {}: {}\n\n{}", job.id, job.state, printable(&job.because), table.text());
    if job.errors.is_empty() { head } else { format!("{head}\n{}", errors(job)) }
}

fn errors(job: &Explanation) -> String {
    let mut table = Table::new(["ATTEMPT", "FAILED", "WORKER", "CODE", "MESSAGE"]);
    for error in &job.errors {
        table.row([
            error.attempt.to_string(),
            format!("{} ago", ago(error.ago)),
            error.worker.clone().unwrap_or_default(),
            error.code.clone(),
            error.message.clone(),
        ]);
    }
    table.text()
}

#[derive(Debug, Serialize)]
struct Known<'j> {
    id: i64,
    state: &'static str,
    because: &'j str,
    kind: &'j str,
    queue: &'j str,
    queue_paused: bool,
    priority: i16,
    attempts: i16,
    max_attempts: i16,
    age_s: f64,
    worker: Option<&'j str>,
    args: Option<&'j RawValue>,
    tags: &'j [String],
    metadata: Option<&'j RawValue>,
    progress: Option<&'j RawValue>,
    result: Option<&'j RawValue>,
    errors: Vec<Value>,
}

pub(super) fn job_json(job: &Explanation) -> String {
    let error = |error: &reveille::jobs::JobFailure| {
        json!({
            "attempt": error.attempt,
            "code": error.code,
            "message": error.message,
            "worker": error.worker,
            "ago_s": error.ago.as_secs_f64(),
        })
    };
    text(&Known {
        id: job.id.0,
        state: job.state.as_str(),
        because: &job.because,
        kind: &job.kind,
        queue: &job.queue,
        queue_paused: job.paused,
        priority: job.priority,
        attempts: job.attempt,
        max_attempts: job.max_attempts,
        age_s: job.age.as_secs_f64(),
        worker: job.worker.as_deref(),
        args: raw(&job.args),
        tags: &job.tags,
        metadata: job.metadata.as_deref().and_then(raw),
        progress: job.progress.as_deref().and_then(raw),
        result: job.result.as_deref().and_then(raw),
        errors: job.errors.iter().map(error).collect(),
    })
}

/// As it was enqueued, byte for byte. Bytes that are not JSON, written by foreign SQL, are left
/// out.
fn raw(bytes: &[u8]) -> Option<&RawValue> {
    serde_json::from_slice(bytes).ok()
}

fn text(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

/// In the largest unit that fits.
fn ago(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0..60 => format!("{:.1} s", time.as_secs_f64()),
        60..3600 => format!("{} min", seconds / 60),
        3600..172_800 => format!("{} h", seconds / 3600),
        _ => format!("{} d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_shown_in_the_largest_unit_that_fits() {
        let shown = [0, 59, 60, 3599, 7200, 172_800].map(|seconds| ago(Duration::from_secs(seconds)));

        assert_eq!(shown, ["0.0 s", "59.0 s", "1 min", "59 min", "2 h", "2 d"]);
    }
}
