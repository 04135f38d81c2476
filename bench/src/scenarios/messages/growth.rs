//! How it grows: many idle partitions, many groups, ten minutes of load, a transaction held open
//! elsewhere.

use std::time::Duration;

use reveille::messages::{Messages, Pop, QueueName};
use reveille_testkit::scenario::{Plain, Report};

use super::contender::{Contender, Ours};
use super::{BYTES, CALLERS, Field, PARTITIONS, Step, timed};
use crate::measure::{median, ratio};

const MANY: usize = 10_000;

pub(super) async fn measure(field: &Field<'_>, report: &mut Report) -> anyhow::Result<()> {
    discovery(field, report).await?;
    groups(field, report).await?;
    scattered(field, report).await?;
    held_open(field, report).await?;
    steady(field, report).await
}

/// A pop that finds the one message among idle partitions.
async fn discovery(field: &Field<'_>, report: &mut Report) -> anyhow::Result<()> {
    if !field.bench.wants("pops among 10 and 10,000 idle partitions") {
        return Ok(());
    }
    let few = Ours::new(field.messages, "discovery-10", 10, BYTES)?;
    let many = Ours::new(field.messages, "discovery-10k", MANY, BYTES)?;
    for ours in [&few, &many] {
        for part in ours.partitions().chunks(1000) {
            ours.push_to(part.iter()).await?;
        }
        drain(field.messages, ours).await?;
    }
    let (mut with_few, mut with_many) = (Vec::new(), Vec::new());
    for n in 0..field.bench.pick(100, 500) {
        for (ours, times) in [(&few, &mut with_few), (&many, &mut with_many)] {
            let partition = &ours.partitions()[n * 7919 % ours.partitions().len()];
            ours.push_to(std::iter::once(partition)).await?;
            let (batch, micros) = timed(ours.pop(1)).await?;
            let batch = batch.ok_or_else(|| anyhow::anyhow!("a pop missed what was pushed"))?;
            field.messages.complete(&batch).await;
            times.push(micros);
        }
    }
    report.row("a pop among 10 idle partitions, p50", median(&with_few), "µs");
    report.row("a pop among 10,000 idle partitions, p50", median(&with_many), "µs");
    report.figure("discovery_10k_vs_10", median(&with_many) / median(&with_few), "times");
    for (ours, what) in [(&few, "10"), (&many, "10,000")] {
        let took = empty_pops(field, ours).await?;
        report.row(format!("a pop that searches {what} partitions and finds nothing, p50"), median(&took), "µs");
    }
    Ok(())
}

/// No push was announced, so each pop searches the whole queue.
async fn empty_pops(field: &Field<'_>, ours: &Ours) -> anyhow::Result<Vec<f64>> {
    let mut times = Vec::new();
    for _ in 0..field.bench.pick(100, 500) {
        let pop = async { Ok(field.messages.pop(Pop::queue(QueueName::new(ours.queue_name())?)).await?) };
        let (batch, micros) = timed(pop).await?;
        anyhow::ensure!(batch.is_none(), "something was left");
        times.push(micros);
    }
    Ok(times)
}

async fn groups(field: &Field<'_>, report: &mut Report) -> anyhow::Result<()> {
    if !field.bench.wants("pushes for 1 and for 10 groups") {
        return Ok(());
    }
    let (one, ten) = (
        Ours::new(field.messages, "groups-1", PARTITIONS, BYTES)?,
        Ours::new(field.messages, "groups-10", PARTITIONS, BYTES)?,
    );
    for (ours, groups) in [(&one, 1), (&ten, 10)] {
        ours.push_to(ours.partitions().iter()).await?;
        ours.subscribe(groups).await?;
    }
    let contenders = [Contender::Ours(one), Contender::Ours(ten)];
    let rates = field.rounds(&contenders, 100, Step::Push).await?;
    report.row("push, batch 100, 1 group", median(&rates[0]), "msg/s");
    report.row("push, batch 100, 10 groups", median(&rates[1]), "msg/s");
    report.figure("groups_10_vs_1", ratio(&rates[1], &rates[0]), "times");
    let rates = field.rounds(&contenders, 100, Step::Whole).await?;
    report.row("end to end in one group, batch 100, 1 group", median(&rates[0]), "msg/s");
    report.row("end to end in one group, batch 100, 10 groups", median(&rates[1]), "msg/s");
    Ok(())
}

/// One message to each of many idle partitions: what it costs end to end.
async fn scattered(field: &Field<'_>, report: &mut Report) -> anyhow::Result<()> {
    if !field.bench.wants("one message to each of 10,000 idle partitions") {
        return Ok(());
    }
    let ours = Ours::new(field.messages, "scattered", MANY, BYTES)?;
    let (mut costs, mut logged, mut pages) = (Vec::new(), Vec::new(), Vec::new());
    let admin = Plain::connect(&field.cluster.url()).await?;
    // Bytes of the log, and how many whole pages went into it: after a checkpoint each page does
    // once.
    let position = async || -> anyhow::Result<(f64, f64)> {
        let position = "select (pg_current_wal_insert_lsn() - '0/0')::float8, wal_fpi::float8 from pg_stat_wal";
        let row = admin.client.query_one(position, &[]).await?;
        Ok((row.get(0), row.get(1)))
    };
    for round in 0..field.bench.pick(2, 4) {
        let before = position().await?;
        let work = async {
            for part in ours.partitions().chunks(500) {
                ours.push_to(part.iter()).await?;
            }
            drain(field.messages, &ours).await
        };
        let (taken, micros) = timed(work).await?;
        anyhow::ensure!(taken == MANY, "{taken} of {MANY} messages came back");
        if round > 0 {
            #[expect(clippy::cast_precision_loss, reason = "ten thousand")]
            let messages = MANY as f64;
            costs.push(micros / messages);
            let after = position().await?;
            logged.push((after.0 - before.0) / messages);
            pages.push((after.1 - before.1) / messages);
        }
    }
    report.row("one message to each of 10,000 idle partitions, pushed, popped, acked", median(&costs), "µs/msg");
    report.row("the same, written to the log", median(&logged), "B/msg");
    report.row("the same, whole pages of 8 kB in it", median(&pages), "/msg");
    Ok(())
}

/// A transaction of another client keeps every dead row alive.
async fn held_open(field: &Field<'_>, report: &mut Report) -> anyhow::Result<()> {
    let seconds = field.bench.pick(6, 60);
    if !field.bench.wants(&format!("a transaction held open for {seconds} s")) {
        return Ok(());
    }
    let ours = Contender::Ours(Ours::new(field.messages, "held", 16, BYTES)?);
    let slice = Duration::from_secs(field.bench.pick(2, 10));
    let start = Step::Whole.run(&ours, slice, CALLERS, 10).await?;
    let holder = Plain::connect(&field.cluster.url()).await?;
    holder.client.batch_execute("begin isolation level repeatable read; select 1").await?;
    let mut held = start;
    for _ in 0..seconds / slice.as_secs().max(1) {
        held = Step::Whole.run(&ours, slice, CALLERS, 10).await?;
    }
    holder.client.batch_execute("commit").await?;
    report.row("end to end, batch 10, 16 partitions", start, "msg/s");
    report.row(
        format!("the same in the last {} s of a transaction held open for {seconds} s", slice.as_secs()),
        held,
        "msg/s",
    );
    report.figure("held_xmin_vs_start", held / start, "times");
    Ok(())
}

async fn steady(field: &Field<'_>, report: &mut Report) -> anyhow::Result<()> {
    let slice = Duration::from_secs(field.bench.pick(2, 30));
    let slices = field.bench.pick(4, 20);
    if !field.bench.wants(&format!("steady load for {} s", slice.as_secs() * slices)) {
        return Ok(());
    }
    let ours = Contender::Ours(Ours::new(field.messages, "steady", PARTITIONS, BYTES)?);
    let mut rates = Vec::new();
    for _ in 0..slices {
        rates.push(Step::Whole.run(&ours, slice, CALLERS, 100).await?);
    }
    let (first, last) = (rates[0], *rates.last().unwrap_or(&f64::NAN));
    report.row("end to end, batch 100, at first", first, "msg/s");
    report.row(format!("the same after {} s", slice.as_secs() * slices), last, "msg/s");
    report.figure("steady_vs_start", last / first, "times");
    let admin = Plain::connect(&field.cluster.url()).await?;
    let size = "select pg_total_relation_size(format('%I.%I', $1::text, $2::text)::regclass)::float8 / 1048576";
    for table in ["partition_row", "cursor", "segment", "dedup", "dedup_run"] {
        let row = admin.client.query_one(size, &[&field.database.schema().as_str(), &table]).await?;
        report.row(format!("size of {table} afterwards"), row.get(0), "MB");
    }
    Ok(())
}

/// Pops and acks until nothing is left; how many that were.
async fn drain(messages: &Messages, ours: &Ours) -> anyhow::Result<usize> {
    let mut taken = 0;
    loop {
        let pop = Pop::queue(QueueName::new(ours.queue_name())?).batch(1000).partitions(500);
        let Some(batch) = messages.pop(pop).await? else { return Ok(taken) };
        messages.complete(&batch).await;
        taken += batch.len();
    }
}
