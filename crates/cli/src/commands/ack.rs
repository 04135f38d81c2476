//! `reveille ack`: settles messages, by their ids or by the output of `pop --json`.

use std::io::Read;

use serde::Deserialize;
use serde_json::{Value, json};

use super::pop::Popped;
use crate::args::messages::Ack;
use crate::exit::{Exit, Failure};
use crate::output;
use crate::remote::Remote;
use crate::table::Table;

/// The result of one ack.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct AckResult {
    #[serde(default)]
    transaction_id: Option<String>,
    success: bool,
    #[serde(default)]
    error: Option<String>,
    #[serde(default)]
    dlq: bool,
}

pub(crate) async fn run(ack: Ack, remote: &Remote<'_>) -> Result<Exit, Failure> {
    let items = if ack.transaction_ids.is_empty() { ack.read()? } else { ack.typed() };
    if items.is_empty() {
        output::note("there was nothing to ack");
        return Ok(Exit::Done);
    }
    let answer = remote.post("/api/v1/ack/batch", json!({ "acknowledgments": items }).to_string()).await?;
    let results: Vec<AckResult> = answer.read()?;
    if ack.json {
        output::line(answer.text()?)?;
    } else {
        output::print(&table(&results))?;
    }
    Ok(if results.iter().all(|result| result.success) { Exit::Done } else { Exit::Refused })
}

impl Ack {
    fn typed(&self) -> Vec<Value> {
        let item =
            |id: &String| self.item(id, self.partition_id.as_deref(), self.lease.as_deref(), self.group.as_deref());
        self.transaction_ids.iter().map(item).collect()
    }

    /// Every message in the output of `pop --json`, with the lease and the group it was popped
    /// with.
    fn read(&self) -> Result<Vec<Value>, Failure> {
        let mut text = String::new();
        let read = std::io::stdin().read_to_string(&mut text);
        read.map_err(|error| Failure::refused(format!("cannot read standard input: {error}")))?;
        let popped: Popped<'_> = serde_json::from_str(&text).map_err(|error| {
            let what = format!("standard input is not what `reveille pop --json` prints: {error}");
            Failure::new(Exit::WrongUse, vec![what])
        })?;
        let leased = popped.messages.iter().filter(|message| !message.lease_id.is_empty());
        let item = leased.map(|message| {
            let (partition, lease) = (Some(&*message.partition_id), Some(&*message.lease_id));
            self.item(&message.transaction_id, partition, lease, Some(&message.consumer_group))
        });
        Ok(item.collect())
    }

    fn item(&self, id: &str, partition: Option<&str>, lease: Option<&str>, group: Option<&str>) -> Value {
        json!({
            "transactionId": id,
            "partitionId": partition,
            "leaseId": lease,
            "consumerGroup": group,
            "status": self.status.name(),
            "error": self.error,
        })
    }
}

fn table(results: &[AckResult]) -> String {
    let mut table = Table::new(["TRANSACTION ID", "RESULT"]);
    for result in results {
        let text = match (&result.error, result.dlq) {
            (Some(error), _) => format!("refused: {error}"),
            (None, true) => "a dead letter now".to_owned(),
            (None, false) => "settled".to_owned(),
        };
        table.row([result.transaction_id.clone().unwrap_or_default(), text]);
    }
    table.text()
}
