//! The results of each queue, and their place in the report.

use std::collections::BTreeMap;

use reveille_testkit::scenario::{Report, progress};

use super::{Account, NAMES, PROCESSES, Settings, loads};
use crate::measure::{median, ratio};

type Rates = Vec<f64>;

/// Everything measured, by the place of the queue among the names.
#[derive(Debug, Default)]
pub(super) struct Found {
    enqueued: BTreeMap<(String, usize), Rates>,
    worked: BTreeMap<(usize, Settings, usize), Rates>,
    scheduled: BTreeMap<usize, f64>,
    /// Ten thousand deep, and a million.
    deep: BTreeMap<usize, (f64, f64)>,
    /// Before a transaction was held open, and at its end.
    held: BTreeMap<usize, (f64, f64)>,
    /// How late the last job of a killed worker began again, in milliseconds, and what became of
    /// all of them.
    killed: Vec<(f64, Account)>,
    /// Milliseconds from the commit of a transaction that was held open to the handler.
    late_commits: Vec<f64>,
    accounts: BTreeMap<usize, Account>,
}

impl Found {
    pub(super) fn enqueued(&mut self, place: usize, way: &str, rate: f64) {
        self.enqueued.entry((way.to_owned(), place)).or_default().push(rate);
    }

    pub(super) fn worked(&mut self, place: usize, settings: Settings, processes: usize, rate: f64) {
        self.worked.entry((processes, settings, place)).or_default().push(rate);
    }

    pub(super) fn scheduled(&mut self, place: usize, rate: f64) {
        self.scheduled.insert(place, rate);
    }

    pub(super) fn deep(&mut self, place: usize, shallow: f64, deep: f64) {
        self.deep.insert(place, (shallow, deep));
    }

    pub(super) fn held(&mut self, place: usize, start: f64, held: f64) {
        self.held.insert(place, (start, held));
    }

    pub(super) fn killed(&mut self, late_ms: f64, account: Account) {
        self.killed.push((late_ms, account));
    }

    pub(super) fn late_commit(&mut self, late_ms: f64) {
        self.late_commits.push(late_ms);
    }

    /// What became of the jobs of one measurement. Of ours, none is lost and none runs twice.
    pub(super) fn account(&mut self, place: usize, account: Account) -> anyhow::Result<()> {
        if account.lost + account.twice > 0 {
            progress(&format!("{}: {} jobs lost, {} run twice", NAMES[place], account.lost, account.twice));
        }
        anyhow::ensure!(place > 0 || account.lost + account.twice == 0, "the books do not add up: {account:?}");
        let all = self.accounts.entry(place).or_default();
        all.lost += account.lost;
        all.twice += account.twice;
        Ok(())
    }

    pub(super) fn add_to(&self, report: &mut Report) {
        for ((way, place), rates) in &self.enqueued {
            let way = match way.as_str() {
                "one" => "one by one, 16 callers",
                "batch" => "batches of 1000",
                _ => "COPY of 1000",
            };
            report.row(format!("enqueue, {way}: {}", NAMES[*place]), median(rates), "jobs/s");
        }
        if let Some(rates) = self.worked.get(&(1, Settings::Default, 0)) {
            report.figure("throughput_per_s", median(rates), "jobs/s");
        }
        for (processes, settings) in loads() {
            let label = format!("work, {processes} processes, {} settings", settings.word());
            for (place, name) in NAMES.iter().enumerate() {
                if let Some(rates) = self.worked.get(&(processes, settings, place)) {
                    report.row(format!("{label}: {name}"), median(rates), "jobs/s");
                }
            }
        }
        self.add_ratios_to(report);
        for (place, rate) in &self.scheduled {
            report.row(format!("work, 30 % scheduled: {}", NAMES[*place]), *rate, "jobs/s");
        }
        let pairs = [("10,000 jobs deep", "1,000,000 jobs deep"), ("before a transaction is held open", "at its end")];
        for (name, pair, found) in
            [("depth_1m_vs_10k", pairs[0], &self.deep), ("held_xmin_vs_start", pairs[1], &self.held)]
        {
            if let Some((before, after)) = found.get(&0) {
                report.figure(name, after / before, "times");
            }
            for (place, (before, after)) in found {
                report.row(format!("work, {}: {}", pair.0, NAMES[*place]), *before, "jobs/s");
                report.row(format!("work, {}: {}", pair.1, NAMES[*place]), *after, "jobs/s");
            }
        }
        self.add_faults_to(report);
        for (place, account) in &self.accounts {
            #[expect(clippy::cast_precision_loss, reason = "a handful, if any")]
            let (lost, twice) = (account.lost as f64, account.twice as f64);
            report.row(format!("jobs lost: {}", NAMES[*place]), lost, "");
            report.row(format!("jobs run twice: {}", NAMES[*place]), twice, "");
        }
    }

    /// The worst of the rounds.
    fn add_faults_to(&self, report: &mut Report) {
        if let Some(late) = self.killed.iter().map(|(late, _)| *late).reduce(f64::max) {
            let what = "after kill -9: the last of 100 began again after the end of its lease";
            report.row(what, late, "ms");
            #[expect(clippy::cast_precision_loss, reason = "a handful, if any")]
            let sum = |of: fn(&Account) -> u64| self.killed.iter().map(|(_, account)| of(account)).sum::<u64>() as f64;
            report.row("after kill -9: jobs lost", sum(|account| account.lost), "");
            report.row("after kill -9: jobs run twice by the worker that took over", sum(|account| account.twice), "");
        }
        if let Some(late) = self.late_commits.iter().copied().reduce(f64::max) {
            let what = "an enqueue whose transaction was open for 5 s, under load: from its commit to its handler";
            report.row(what, late, "ms");
        }
    }

    /// Beside the best peer, with as many processes; the figure is the smaller one.
    fn add_ratios_to(&self, report: &mut Report) {
        for (figure, settings) in [("vs_best_peer_default", Settings::Default), ("vs_best_peer_tuned", Settings::Tuned)]
        {
            let ratios: Vec<f64> = PROCESSES.iter().filter_map(|it| self.versus_best(*it, settings)).collect();
            for (processes, ratio) in PROCESSES.iter().zip(&ratios) {
                let what = format!("beside the best peer, {processes} processes, {} settings", settings.word());
                report.row(what, *ratio, "times");
            }
            if let Some(least) = ratios.into_iter().reduce(f64::min) {
                report.figure(figure, least, "times");
            }
        }
    }

    fn versus_best(&self, processes: usize, settings: Settings) -> Option<f64> {
        let ours = self.worked.get(&(processes, settings, 0))?;
        // A peer that is better untuned is at its best there.
        let theirs = Settings::BOTH.into_iter().filter(|theirs| *theirs <= settings);
        let peers = theirs.flat_map(|theirs| (1..NAMES.len()).map(move |place| (processes, theirs, place)));
        let peers = peers.filter_map(|which| self.worked.get(&which));
        let best = peers.max_by(|one, other| median(one).total_cmp(&median(other)))?;
        Some(ratio(ours, best))
    }
}
