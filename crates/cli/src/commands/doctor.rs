//! `reveille doctor`: every finding in a line, with what to do about it.

use reveille::database::{Examination, ExamineOptions, Finding, Verdict};
use reveille::messages::Messages;
use serde_json::{Value, json};

use crate::config::Config;
use crate::exit::{Exit, Failure};
use crate::open_database::OpenDatabase;
use crate::output;

pub(crate) async fn run(json: bool, config: &Config) -> Result<Exit, Failure> {
    // What a busy `serve` opens, whether its database is private or not.
    let connections = config.database.options("").connections_max().saturating_add(Messages::CONNECTIONS);
    let needed = u32::try_from(connections).unwrap_or(u32::MAX);
    let options = ExamineOptions::default().connections_needed(needed);
    let seen = OpenDatabase::with(config, async |database| Ok::<_, Failure>(database.examine(&options).await)).await?;
    if json {
        output::json(&as_json(&seen))?;
    } else {
        seen.findings.iter().try_for_each(|finding| output::line(&as_line(finding)))?;
    }
    Ok(if seen.verdict() == Verdict::Fail { Exit::Refused } else { Exit::Done })
}

fn as_line(finding: &Finding) -> String {
    let Finding { name, sentence, remedy, verdict } = finding;
    let verdict = word(*verdict);
    let remedy = if remedy.is_empty() { String::new() } else { format!("; {remedy}") };
    format!("{verdict:4}  {name:12}  {sentence}{remedy}")
}

fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Ok => "ok",
        Verdict::Warn => "warn",
        Verdict::Fail => "fail",
    }
}

fn as_json(seen: &Examination) -> Value {
    let findings = seen.findings.iter().map(|finding| {
        json!({
            "name": finding.name,
            "verdict": word(finding.verdict),
            "sentence": finding.sentence,
            "remedy": finding.remedy,
        })
    });
    json!({ "verdict": word(seen.verdict()), "findings": findings.collect::<Vec<_>>(), "facts": facts(seen) })
}

fn facts(seen: &Examination) -> Value {
    let facts = &seen.facts;
    let durability = facts.durability.as_ref().map(|durability| {
        json!({
            "fsync": durability.fsync,
            "full_page_writes": durability.full_page_writes,
            "synchronous_commit": durability.synchronous_commit,
            "synchronous_standby_names": durability.synchronous_standby_names,
        })
    });
    let holders = facts.xmin_holders.as_ref().map(|holders| {
        let holder =
            holders.iter().map(|holder| json!({ "kind": holder.kind, "who": holder.who, "seconds": holder.seconds }));
        holder.collect::<Vec<_>>()
    });
    let connections = facts
        .connections
        .map(|counts| json!({ "allowed": counts.allowed, "reserved": counts.reserved, "used": counts.used }));
    json!({
        "postgres": facts.postgres,
        "schema_version": facts.schema_version,
        "durability": durability,
        "listen_echo_ms": facts.listen_echo.map(|took| took.as_secs_f64() * 1000.0),
        "clock_ahead_seconds": facts.clock_ahead_seconds,
        "xmin_holders": holders,
        "notify_queue": facts.notify_queue,
        "connections": connections,
        "stranded": facts.stranded,
    })
}
