//! `reveille queues`: lists queues and how many messages wait; shows, configures or deletes one.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::args::messages::{QueueList, QueueStep, Queues};
use crate::exit::{Exit, Failure};
use crate::output;
use crate::remote::{Answer, Remote, encoded, query};
use crate::table::{Table, printable};

/// Queues of one page, which is the most a server gives.
const PAGE: usize = 1000;

pub(crate) async fn run(queues: Queues, remote: &Remote<'_>) -> Result<Exit, Failure> {
    match queues.step {
        None => list(&queues.list, remote).await,
        Some(QueueStep::Show { queue, json }) => {
            let answer = remote.get(&of_queue(&queue)).await?;
            print_answer(json, &answer, description)
        }
        Some(QueueStep::Configure { queue, options, namespace, task, replace, json }) => {
            let mut body = json!({ "queue": queue, "options": read(&options)? });
            let mode = replace.then(|| "replace".to_owned());
            for (name, value) in [("namespace", namespace), ("task", task), ("mode", mode)] {
                body[name] = value.into();
            }
            let answer = remote.post("/api/v1/configure", body.to_string()).await?;
            print_answer(json, &answer, |answer| Ok(settings(&answer.read::<Value>()?["options"])))
        }
        Some(QueueStep::Delete { queue, yes: false, .. }) => Err(Failure::refused(format!(
            "this deletes the queue {} with all its messages and groups, for ever; say --yes to do it",
            printable(&queue)
        ))),
        Some(QueueStep::Delete { queue, json, .. }) => {
            let answer = remote.delete(&of_queue(&queue)).await?;
            let existed = answer.read::<Value>()?["existed"] == true;
            print_answer(json, &answer, |_| {
                Ok(format!("{}\n", if existed { "deleted" } else { "there was no such queue" }))
            })?;
            Ok(if existed { Exit::Done } else { Exit::Refused })
        }
    }
}

fn of_queue(queue: &str) -> String {
    format!("/api/v1/resources/queues/{}", encoded(queue))
}

/// Prints the server's answer, as JSON or as text for people.
pub(super) fn print_answer(
    json: bool,
    answer: &Answer,
    text: impl FnOnce(&Answer) -> Result<String, Failure>,
) -> Result<Exit, Failure> {
    if json {
        output::line(answer.text()?)?;
    } else {
        output::print(&text(answer)?)?;
    }
    Ok(Exit::Done)
}

#[derive(Debug, Deserialize)]
struct Page {
    queues: Vec<Queue>,
}

#[derive(Debug, Deserialize)]
struct Queue {
    name: String,
    namespace: Option<String>,
    task: Option<String>,
    partitions: i64,
    messages: Messages,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Messages {
    total: i64,
    pending: i64,
    leased_partitions: i64,
}

/// Page by page; as JSON, each page is a line.
async fn list(which: &QueueList, remote: &Remote<'_>) -> Result<Exit, Failure> {
    let mut table = Table::new(["QUEUE", "WAITING", "KEPT", "PARTITIONS", "LEASED", "NAMESPACE", "TASK"]);
    let mut after: Option<String> = None;
    loop {
        let parameters = [
            ("namespace", which.namespace.as_deref()),
            ("task", which.task.as_deref()),
            ("search", which.search.as_deref()),
            ("after", after.as_deref()),
        ];
        let answer = remote.get(&format!("/api/v1/resources/queues{}", query(&parameters))).await?;
        let page: Page = answer.read()?;
        if which.json {
            output::line(answer.text()?)?;
        }
        page.queues.iter().for_each(|queue| table.row(queue.cells()));
        after = page.queues.last().map(|queue| queue.name.clone());
        if page.queues.len() < PAGE {
            break;
        }
    }
    if !which.json {
        output::print(&table.text())?;
    }
    Ok(Exit::Done)
}

impl Queue {
    fn cells(&self) -> [String; 7] {
        let some = |text: &Option<String>| text.clone().unwrap_or_default();
        let Messages { total, pending, leased_partitions } = self.messages;
        let numbers = [pending, total, self.partitions, leased_partitions].map(|number| number.to_string());
        let [pending, total, partitions, leased] = numbers;
        [self.name.clone(), pending, total, partitions, leased, some(&self.namespace), some(&self.task)]
    }
}

fn description(answer: &Answer) -> Result<String, Failure> {
    let queue: Queue = answer.read()?;
    let all: Value = answer.read()?;
    let mut summary = Table::new(["QUEUE", "WAITING", "KEPT", "PARTITIONS", "LEASED", "NAMESPACE", "TASK"]);
    summary.row(queue.cells());
    let groups = super::groups::table(all["consumerGroups"].as_array().map_or(&[], Vec::as_slice));
    Ok(format!("{}\n{}\n{groups}", summary.text(), settings(&all["options"])))
}

fn settings(options: &Value) -> String {
    let mut table = Table::new(["OPTION", "VALUE"]);
    for (name, value) in options.as_object().into_iter().flatten() {
        table.row([name.clone(), value.to_string()]);
    }
    table.text()
}

/// `leaseTime=60`: numbers, true and false become JSON values. The server checks names and values.
fn read(options: &[String]) -> Result<Map<String, Value>, Failure> {
    let pair = |option: &String| match option.split_once('=') {
        Some((name, value)) if !name.is_empty() => {
            let value = serde_json::from_str(value).unwrap_or_else(|_| Value::from(value));
            Ok((name.to_owned(), value))
        }
        _ => Err(Failure::new(Exit::WrongUse, vec![format!("{option:?} is no option: write it as leaseTime=60")])),
    };
    options.iter().map(pair).collect()
}
