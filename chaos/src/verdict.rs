//! A verdict in figures and in words.

use std::time::Duration;

use reveille_testkit::scenario::{Report, quantile};

use super::checker::{Column, Verdict};
use super::history::Record;
use super::plan::Kind;
use super::story;

/// How many stories are printed for each column; the rest is counted.
const STORIES: usize = 2;

pub(crate) fn report(verdict: &Verdict, history: &[Record], version: String, took: Duration) -> Report {
    let counted = &verdict.counted;
    let mut report = Report::new("chaos", version);
    report.figure("acked", number(counted.acked), "acks");
    report.figure("kills", number(kills(verdict)), "kill -9");
    for column in Column::ALL {
        report.figure(column.name(), number(verdict.count(column) as u64), "");
    }
    report.figure("redelivered", number(counted.redelivered.sum()), "messages");
    report.figure("pushed", number(counted.pushed), "messages");
    report.row("pushes whose end nobody knows", number(counted.push_unknown), "messages");
    report.row("deliveries", number(counted.delivered), "messages");
    report.row("acks refused", number(counted.ack_refused), "messages");
    report.row("acks whose end nobody knows", number(counted.ack_unknown), "messages");
    report.row("jobs and orchestrations done", number(counted.effects), "");
    let again = counted.redelivered;
    report.row("again: the consumer said so", number(again.nacked), "messages");
    report.row("again: the lease was over", number(again.lease_ended), "messages");
    report.row("again: PostgreSQL was killed", number(again.claim_forgotten), "messages");
    report.row("again: the group was moved back", number(again.sought), "messages");
    report.row("again: two pops overlapped", number(again.overlapping), "messages");
    #[expect(clippy::cast_precision_loss, reason = "microseconds of a wait")]
    let wakes: Vec<f64> = counted.calm_wakes.iter().map(|wake| *wake as f64 / 1000.0).collect();
    if !wakes.is_empty() {
        report.row("from push to delivery in the calm, p50", quantile(&wakes, 0.5), "ms");
        report.row("the same, p99", quantile(&wakes, 0.99), "ms");
        report.row("the same, longest", quantile(&wakes, 1.0), "ms");
    }
    for (kind, times) in &counted.faults {
        report.row(format!("fault: {kind}"), number(*times), "times");
    }
    report.row("records", number(history.len() as u64), "");
    report.row("the whole run", took.as_secs_f64(), "s");
    report
}

/// What asynchronous replication lost when its primary died: a promise that the database does not
/// make.
pub(crate) fn report_loss(report: &mut Report, verdict: &Verdict) {
    report.row(
        "asynchronous standby: pushes answered and gone",
        number(verdict.count(Column::Lost) as u64),
        "messages",
    );
    let undone = verdict.count(Column::DoubleSuccess) + verdict.count(Column::Unexplained);
    report.row("asynchronous standby: acks answered and gone", number(undone as u64), "messages");
    let left = [Column::Stuck, Column::OrphanLease, Column::Deadlock, Column::Repaired, Column::Panicked];
    let left: usize = left.into_iter().map(|column| verdict.count(column)).sum();
    report.row("asynchronous standby: stuck, orphaned, repaired", number(left as u64), "");
}

/// What is wrong, with stories; `None` when nothing is.
pub(crate) fn complaint(verdict: &Verdict, history: &[Record]) -> Option<String> {
    if verdict.is_clean() {
        return None;
    }
    let mut stories = Vec::new();
    for column in Column::ALL {
        let findings: Vec<_> = verdict.findings.iter().filter(|finding| finding.column == column).collect();
        stories.extend(findings.iter().take(STORIES).map(|finding| story::write(history, finding)));
        if findings.len() > STORIES {
            stories.push(format!("{column}: {} more", findings.len() - STORIES));
        }
    }
    Some(stories.join("\n\n"))
}

fn kills(verdict: &Verdict) -> u64 {
    verdict.counted.faults.iter().filter(|(kind, _)| Kind::is_kill(kind)).map(|(_, times)| times).sum()
}

#[expect(clippy::cast_precision_loss, reason = "a count with no more than three digits that matter")]
fn number(count: u64) -> f64 {
    count as f64
}
