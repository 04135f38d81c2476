//! `reveille pop`: messages, and how to ack them.

use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::args::messages::Pop;
use crate::config::time;
use crate::exit::{Exit, Failure};
use crate::output;
use crate::remote::{Answer, Remote, RemoteError, encoded, query};
use crate::table::{Table, printable};

/// The messages of a pop, with the fields that are printed.
#[derive(Debug, Deserialize)]
pub(super) struct Popped<'a> {
    #[serde(borrow)]
    pub(super) messages: Vec<Message<'a>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Message<'a> {
    pub(super) transaction_id: String,
    #[serde(borrow)]
    pub(super) data: &'a RawValue,
    pub(super) created_at: String,
    pub(super) partition: String,
    pub(super) partition_id: String,
    pub(super) lease_id: String,
    pub(super) consumer_group: String,
    delivery_attempt: i64,
    #[serde(default)]
    lease_seconds: Option<f64>,
}

pub(crate) async fn run(pop: Pop, remote: &Remote<'_>) -> Result<Exit, Failure> {
    let wait = pop.wait.as_deref().map(|text| time(text).map_err(|why| wrong_wait(text, &why))).transpose()?;
    let answer = remote.get_waiting(&path(&pop, wait), wait.unwrap_or_default()).await?;
    if answer.is_empty() {
        note_nothing(&pop.queue, remote).await?;
        return if pop.json { output::line(r#"{"messages":[]}"#).map(|()| Exit::Done) } else { Ok(Exit::Done) };
    }
    if pop.json {
        output::line(answer.text()?)?;
    } else {
        output::print(&table(&answer)?)?;
    }
    Ok(Exit::Done)
}

fn wrong_wait(text: &str, why: &str) -> Failure {
    Failure::new(Exit::WrongUse, vec![format!("--wait={text} {why}")])
}

/// The path to pop messages of a queue, or of one partition.
pub(super) fn pop_path(queue: &str, partition: Option<&str>) -> String {
    let of_partition = partition.map(|name| format!("/partition/{}", encoded(name))).unwrap_or_default();
    format!("/api/v1/pop/queue/{}{of_partition}", encoded(queue))
}

fn path(pop: &Pop, wait: Option<Duration>) -> String {
    let (mode, since) = match pop.from.as_deref() {
        Some(mode @ ("all" | "new")) => (Some(mode), None),
        since => (None, since),
    };
    let yes = |is: bool| is.then_some("true");
    let parameters = [
        ("batch", Some(pop.batch.to_string())),
        ("partitions", Some(pop.partitions.to_string())),
        ("timeout", wait.map(|wait| wait.as_millis().to_string())),
    ];
    let mut parameters: Vec<(&str, Option<&str>)> =
        parameters.iter().map(|(name, value)| (*name, value.as_deref())).collect();
    parameters.extend([
        ("consumerGroup", pop.group.as_deref()),
        ("subscriptionMode", mode),
        ("subscriptionFrom", since),
        ("autoAck", yes(pop.auto_ack)),
        ("wait", yes(wait.is_some())),
    ]);
    format!("{}{}", pop_path(&pop.queue, pop.partition.as_deref()), query(&parameters))
}

/// A pop may wait for a queue that does not exist yet, so a misspelt name gets a note.
async fn note_nothing(queue: &str, remote: &Remote<'_>) -> Result<(), Failure> {
    let there = is_there(queue, remote).await?;
    let missing = if there { String::new() } else { format!(": no queue is called {} yet", printable(queue)) };
    output::note(&format!("nothing there{missing}"));
    Ok(())
}

pub(super) async fn is_there(queue: &str, remote: &Remote<'_>) -> Result<bool, Failure> {
    match remote.get(&format!("/api/v1/resources/queues/{}", encoded(queue))).await {
        Ok(_) => Ok(true),
        Err(RemoteError::Refused(fault)) if fault.code == "no_such_queue" => Ok(false),
        Err(error) => Err(error.into()),
    }
}

fn table(answer: &Answer) -> Result<String, Failure> {
    let popped: Popped<'_> = answer.read()?;
    let mut table = Table::new(["TRANSACTION ID", "PARTITION", "ATTEMPT", "PUSHED AT", "PAYLOAD"]);
    for message in &popped.messages {
        table.row([
            message.transaction_id.clone(),
            message.partition.clone(),
            message.delivery_attempt.to_string(),
            message.created_at.clone(),
            message.data.get().to_owned(),
        ]);
    }
    Ok(format!("{}{}", table.text(), how_to_ack(&popped.messages)))
}

/// One line for each partition, to be pasted into a shell.
fn how_to_ack(messages: &[Message<'_>]) -> String {
    let leased: Vec<&Message<'_>> = messages.iter().filter(|message| !message.lease_id.is_empty()).collect();
    let partitions = leased.chunk_by(|one, other| one.partition_id == other.partition_id);
    let line = |messages: &[&Message<'_>]| {
        let [first, ..] = messages else { return String::new() };
        let ids: Vec<String> = messages.iter().map(|message| output::shell_word(&message.transaction_id)).collect();
        format!(
            "\nleased for {} s; when they are done:\nreveille ack --partition-id {} --lease {} --group {} {}\n",
            first.lease_seconds.unwrap_or_default(),
            first.partition_id,
            first.lease_id,
            output::shell_word(&first.consumer_group),
            ids.join(" "),
        )
    };
    partitions.map(line).collect()
}
