//! `reveille dlq`: messages that groups gave up on.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::jobs::NOTHING;
use super::queues::print_answer;
use crate::args::messages::{ChosenLetters, Dlq, LetterStep, Letters};
use crate::exit::{Exit, Failure};
use crate::remote::{Answer, Remote, encoded, query};
use crate::table::Table;

pub(crate) async fn run(dlq: Dlq, remote: &Remote<'_>) -> Result<Exit, Failure> {
    match dlq.step {
        None => {
            let (limit, offset) = (dlq.limit.to_string(), dlq.offset.to_string());
            let mut parameters = dlq.which.parameters().to_vec();
            parameters.extend([("limit", Some(limit.as_str())), ("offset", Some(offset.as_str()))]);
            let answer = remote.get(&format!("/api/v1/dlq{}", query(&parameters))).await?;
            print_answer(dlq.json, &answer, table)
        }
        Some(LetterStep::Redrive(chosen)) => {
            let answer = remote.post("/api/v1/dlq/redrive", chosen.body().to_string()).await?;
            let redriven = answer.read::<Value>()?["redriven"].as_u64().unwrap_or(0);
            print_answer(chosen.json, &answer, |_| Ok(chosen.redriven(redriven)))?;
            let wanted = u64::try_from(chosen.ids.len()).unwrap_or(u64::MAX).max(1);
            Ok(if redriven < wanted { Exit::Refused } else { Exit::Done })
        }
        Some(LetterStep::Delete(chosen)) if !chosen.ids.is_empty() => delete(&chosen, remote).await,
        Some(LetterStep::Delete(chosen)) => {
            let mut parameters = chosen.which.parameters().to_vec();
            parameters.push(("all", chosen.all.then_some("true")));
            let answer = remote.delete(&format!("/api/v1/dlq{}", query(&parameters))).await?;
            print_answer(chosen.json, &answer, |answer| counted(answer, "count", "deleted"))
        }
    }
}

/// One by one; as JSON, each is a line.
async fn delete(chosen: &ChosenLetters, remote: &Remote<'_>) -> Result<Exit, Failure> {
    let mut all = Exit::Done;
    for id in &chosen.ids {
        let answer = remote.delete(&format!("/api/v1/dlq/{}", encoded(id))).await?;
        let is_gone = answer.read::<Value>()?["deleted"] == true;
        let text = if is_gone { format!("deleted {id}\n") } else { format!("there is no dead letter {id}\n") };
        print_answer(chosen.json, &answer, |_| Ok(text))?;
        if !is_gone {
            all = Exit::Refused;
        }
    }
    Ok(all)
}

impl Letters {
    fn parameters(&self) -> [(&'static str, Option<&str>); 6] {
        [
            ("queue", self.queue.as_deref()),
            ("consumerGroup", self.group.as_deref()),
            ("partition", self.partition.as_deref()),
            ("from", self.from.as_deref()),
            ("to", self.to.as_deref()),
            ("text", self.text.as_deref()),
        ]
    }
}

impl ChosenLetters {
    fn redriven(&self, count: u64) -> String {
        match (count, self.ids.len()) {
            (0, _) => NOTHING.to_owned(),
            (count, 0 | 1) => format!("put back to work: {count}\n"),
            (count, wanted) => format!("put back to work: {count} of {wanted}\n"),
        }
    }

    fn body(&self) -> Value {
        if !self.ids.is_empty() {
            return json!({ "ids": self.ids });
        }
        let mut body = json!({ "all": self.all });
        for (name, value) in self.which.parameters() {
            body[name] = value.into();
        }
        body
    }
}

#[derive(Debug, Deserialize)]
struct Found<'a> {
    #[serde(borrow)]
    messages: Vec<Letter<'a>>,
    total: i64,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Letter<'a> {
    id: String,
    queue: String,
    partition: String,
    consumer_group: Option<String>,
    transaction_id: String,
    failed_at: String,
    error_message: Option<String>,
    #[serde(borrow, default)]
    data: Option<&'a RawValue>,
}

fn table(answer: &Answer) -> Result<String, Failure> {
    let found: Found<'_> = answer.read()?;
    let mut table =
        Table::new(["ID", "QUEUE", "PARTITION", "GROUP", "TRANSACTION ID", "DEAD SINCE", "ERROR", "PAYLOAD"]);
    for letter in &found.messages {
        table.row([
            letter.id.clone(),
            letter.queue.clone(),
            letter.partition.clone(),
            letter.consumer_group.clone().unwrap_or_default(),
            letter.transaction_id.clone(),
            letter.failed_at.clone(),
            letter.error_message.clone().unwrap_or_default(),
            letter.data.map(|data| data.get().to_owned()).unwrap_or_default(),
        ]);
    }
    Ok(format!("{}{} of {}\n", table.text(), found.messages.len(), found.total))
}

fn counted(answer: &Answer, what: &str, verb: &str) -> Result<String, Failure> {
    Ok(format!("{verb}: {}\n", answer.read::<Value>()?[what]))
}
