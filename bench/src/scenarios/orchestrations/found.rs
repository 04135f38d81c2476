//! The results of each provider, and their place in the report.

use std::collections::BTreeMap;

use reveille_testkit::scenario::{Report, quantile};

use super::NAMES;
use crate::measure::median;

/// Everything measured of one provider.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) idle: f64,
    /// Passed, of how many.
    pub(super) validation: Option<(f64, f64)>,
    pub(super) turns: Vec<f64>,
    pub(super) activities: Vec<f64>,
    /// Whole orchestrations, by round.
    pub(super) whole: Vec<Vec<f64>>,
    pub(super) late: Vec<f64>,
    /// The worst of each situation.
    pub(super) gaps: BTreeMap<String, f64>,
    /// Orchestrations per second and statements for each, by slots and delay.
    pub(super) stress: BTreeMap<(u64, u64), Vec<f64>>,
    pub(super) statements: BTreeMap<(u64, u64), Vec<f64>>,
    /// Orchestrations per second with a provider that takes no time, and with one whose only cost
    /// is a durable commit for each activity.
    pub(super) ceilings: BTreeMap<(u64, u64), (f64, f64)>,
    /// Orchestrations per second with large payloads, and how many failed.
    pub(super) large: (f64, f64),
    pub(super) failed: f64,
}

/// The load that statements are counted under.
const USUAL: (u64, u64) = (4, 10);

pub(super) fn add_to(report: &mut Report, found: &[Found; 3]) {
    let [ours, pg, opt] = found;
    if let Some((passed, total)) = ours.validation {
        report.figure("validation_passed", passed, "");
        report.figure("validation_total", total, "");
    }
    for (name, found) in NAMES.into_iter().zip(found).skip(1) {
        if let Some((passed, total)) = found.validation {
            report.row(format!("validation, {name}: passed"), passed, "");
            report.row(format!("validation, {name}: of"), total, "");
        }
    }
    report.figure("idle_statements_per_s", ours.idle, "per s");
    each(report, "idle statements", "per s", found, |found| Some(found.idle));
    report.figure("fetch_p50_ms", median(&ours.fetches()), "ms");
    each(report, "enqueue to fetch, p50", "ms", found, |found| Some(median(&found.fetches())));
    each(report, "enqueue to fetch, p99", "ms", found, |found| Some(quantile(&found.fetches(), 0.99)));
    each(report, "orchestration with an activity, p50", "ms", found, |found| Some(found.whole_p50()));
    each(report, "orchestration with an activity, p99", "ms", found, |found| {
        Some(quantile(&found.whole.concat(), 0.99))
    });
    report.figure("e2e_p50_vs_opt", ours.whole_p50() / opt.whole_p50(), "times");
    report.figure("timer_late_p99_ms", quantile(&ours.late, 0.99), "ms");
    each(report, "timer late, p50", "ms", found, |found| Some(median(&found.late)));
    each(report, "timer late, p99", "ms", found, |found| Some(quantile(&found.late, 0.99)));
    report.figure("gap_max_ms", ours.gaps.values().copied().fold(0.0, f64::max), "ms");
    for situation in ours.gaps.keys() {
        each(report, &format!("late after {situation}"), "ms", found, |found| found.gaps.get(situation).copied());
    }
    for load @ (slots, delay) in ours.stress.keys() {
        let what = format!("stress {slots}:{slots}, {delay} ms");
        each(report, &what, "per s", found, |found| found.stress.get(load).map(|rates| median(rates)));
        if let Some((timeless, durable)) = ours.ceilings.get(load) {
            report.row(format!("{what}: with a provider that takes no time"), *timeless, "per s");
            report.row(format!("{what}: with one that only commits the end of each activity"), *durable, "per s");
        }
    }
    let best = |load: (u64, u64)| pg.rate(load).max(opt.rate(load));
    report.figure("stress_4x4_vs_best", ours.rate(USUAL) / best(USUAL), "times");
    report.figure("stress_8x8_vs_best", ours.rate((8, 10)) / best((8, 10)), "times");
    let statements = |found: &Found| found.statements.get(&USUAL).map(|counts| median(counts));
    report.figure("statements_per_orchestration", statements(ours).unwrap_or(f64::NAN), "");
    each(report, "statements per orchestration, 4:4", "", found, statements);
    each(report, "large payloads", "per s", found, |found| Some(found.large.0));
    each(report, "orchestrations that failed", "", found, |found| Some(found.failed + found.large.1));
}

fn each(
    report: &mut Report,
    what: &str,
    unit: &'static str,
    found: &[Found; 3],
    value: impl Fn(&Found) -> Option<f64>,
) {
    for (name, found) in NAMES.into_iter().zip(found) {
        if let Some(value) = value(found) {
            report.row(format!("{what}: {name}"), value, unit);
        }
    }
}

impl Found {
    /// Turns and activities alike.
    fn fetches(&self) -> Vec<f64> {
        [self.turns.as_slice(), self.activities.as_slice()].concat()
    }

    /// The median of the rounds' own medians.
    fn whole_p50(&self) -> f64 {
        let medians: Vec<f64> = self.whole.iter().map(|round| median(round)).collect();
        median(&medians)
    }

    fn rate(&self, load: (u64, u64)) -> f64 {
        self.stress.get(&load).map_or(f64::NAN, |rates| median(rates))
    }
}
