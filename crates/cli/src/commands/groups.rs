//! `reveille groups`: how far consumer groups are, and moving them.

use serde_json::{Value, json};

use super::queues::print_answer;
use crate::args::messages::{GroupStep, Groups, SeekTo};
use crate::exit::{Exit, Failure};
use crate::remote::{Answer, Remote, encoded, query};
use crate::table::{Table, printable};

pub(crate) async fn run(groups: Groups, remote: &Remote<'_>) -> Result<Exit, Failure> {
    match groups.step {
        None => {
            let path = format!("/api/v1/consumer-groups{}", query(&[("queue", groups.queue.as_deref())]));
            let answer = remote.get(&path).await?;
            print_answer(groups.json, &answer, |answer| Ok(table(&answer.read::<Vec<Value>>()?)))
        }
        Some(GroupStep::Show { group, json }) => {
            let answer = remote.get(&of_group(&group)).await?;
            if answer.read::<Value>()?.as_object().is_some_and(serde_json::Map::is_empty) {
                return Err(Failure::refused(format!("no consumer group is called {}", printable(&group))));
            }
            print_answer(json, &answer, partitions)
        }
        Some(GroupStep::Seek { group, queue, to, partition, json }) => {
            let within = partition.map(|name| format!("/partitions/{}", encoded(&name))).unwrap_or_default();
            let path = format!("{}/queues/{}{within}/seek", of_group(&group), encoded(&queue));
            let answer = remote.post(&path, to.body().to_string()).await?;
            print_answer(json, &answer, sought)
        }
        Some(GroupStep::Delete { group, queue, keep_subscription, json }) => {
            let of_queue = queue.map(|name| format!("/queues/{}", encoded(&name))).unwrap_or_default();
            let keep = query(&[("deleteMetadata", keep_subscription.then_some("false"))]);
            let answer = remote.delete(&format!("{}{of_queue}{keep}", of_group(&group))).await?;
            print_answer(json, &answer, |answer| {
                Ok(format!("deleted; it had been in {} partitions\n", answer.read::<Value>()?["deletedPartitions"]))
            })
        }
    }
}

fn of_group(group: &str) -> String {
    format!("/api/v1/consumer-groups/{}", encoded(group))
}

impl SeekTo {
    fn body(&self) -> Value {
        match &self.to {
            Some(time) => json!({ "timestamp": time }),
            None if self.to_end => json!({ "toEnd": true }),
            None => json!({ "toBeginning": true }),
        }
    }
}

fn sought(answer: &Answer) -> Result<String, Failure> {
    let moved: Value = answer.read()?;
    let clamped = match moved["partitionsClamped"].as_i64() {
        None | Some(0) => String::new(),
        Some(count) => format!("; in {count} of them that place is no longer kept, so it is at the nearest one"),
    };
    Ok(format!("moved in {} partitions{clamped}\n", moved["partitionsUpdated"]))
}

/// Each group in each queue.
pub(super) fn table(groups: &[Value]) -> String {
    let mut table = Table::new(["GROUP", "QUEUE", "BEHIND", "SECONDS", "LEASES", "PARTITIONS", "BEGAN"]);
    for group in groups {
        let began = cell(&group["subscriptionTimestamp"]);
        table.row([
            cell(&group["name"]),
            cell(&group["queueName"]),
            cell(&group["totalLag"]),
            cell(&group["maxTimeLag"]),
            cell(&group["members"]),
            cell(&group["partitions"]),
            if began.is_empty() { cell(&group["subscriptionMode"]) } else { began },
        ]);
    }
    table.text()
}

fn partitions(answer: &Answer) -> Result<String, Failure> {
    let mut table = Table::new(["QUEUE", "PARTITION", "DONE", "BEHIND", "SECONDS", "LEASED", "FAILURES"]);
    let queues: serde_json::Map<String, Value> = answer.read()?;
    for (queue, state) in &queues {
        for place in state["partitions"].as_array().into_iter().flatten() {
            table.row([
                queue.clone(),
                cell(&place["partition"]),
                cell(&place["totalConsumed"]),
                cell(&place["offsetLag"]),
                cell(&place["timeLagSeconds"]),
                cell(&place["leaseActive"]),
                cell(&place["failures"]),
            ]);
        }
    }
    Ok(table.text())
}

/// A value as people read it: texts without quotes, nothing for null.
pub(super) fn cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Bool(is) => if *is { "yes" } else { "no" }.to_owned(),
        other => other.to_string(),
    }
}
