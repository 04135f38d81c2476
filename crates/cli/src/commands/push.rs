//! `reveille push`: payloads from the command line, a file or standard input.

use std::io::{BufRead, BufReader};
use std::path::Path;

use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;

use crate::args::messages::Push;
use crate::exit::{Exit, Failure};
use crate::output;
use crate::remote::Remote;
use crate::table::{Table, printable};

/// Payloads of one request: enough to be quick, few enough for the server's limits.
const AT_ONCE: usize = 1000;
const BYTES_AT_ONCE: usize = 4 << 20;

/// The result of one message.
#[derive(Debug, Deserialize)]
struct PushResult<'a> {
    #[serde(default)]
    transaction_id: Option<String>,
    status: String,
    #[serde(default)]
    message_id: Option<String>,
    #[serde(borrow, default)]
    error: Option<std::borrow::Cow<'a, str>>,
}

pub(crate) async fn run(push: Push, remote: &Remote<'_>) -> Result<Exit, Failure> {
    let mut pusher = Pusher { push: &push, remote, waiting: Vec::new(), bytes: 0, stored: 0, refused: 0 };
    if push.payloads.is_empty() {
        pusher.push_lines().await?;
    } else {
        for (at, payload) in push.payloads.iter().enumerate() {
            let checked = json_text(payload).map_err(|why| not_json(&format!("payload {}", at + 1), payload, &why))?;
            pusher.add(checked).await?;
        }
    }
    pusher.send().await?;
    if pusher.stored + pusher.refused == 0 {
        return Err(Failure::new(Exit::WrongUse, vec!["there was nothing to push: no payload was given".to_owned()]));
    }
    if !push.json && push.payloads.is_empty() {
        output::line(&format!("pushed {} messages to {}", pusher.stored, printable(&push.queue)))?;
    }
    Ok(if pusher.refused == 0 { Exit::Done } else { Exit::Refused })
}

/// Collects payloads and sends them, one request at a time.
struct Pusher<'p> {
    push: &'p Push,
    remote: &'p Remote<'p>,
    waiting: Vec<Box<RawValue>>,
    bytes: usize,
    stored: usize,
    refused: usize,
}

impl Pusher<'_> {
    async fn push_lines(&mut self) -> Result<(), Failure> {
        let file = self.push.file.as_deref().filter(|path| *path != Path::new("-"));
        let place = file.map_or_else(|| "standard input".to_owned(), |path| path.display().to_string());
        let unreadable = |error: std::io::Error| Failure::refused(format!("cannot read {place}: {error}"));
        let lines: Box<dyn BufRead> = match file {
            Some(path) => Box::new(BufReader::new(std::fs::File::open(path).map_err(unreadable)?)),
            None => Box::new(BufReader::new(std::io::stdin())),
        };
        for (at, line) in lines.lines().enumerate() {
            let line = line.map_err(unreadable)?;
            if line.trim().is_empty() {
                continue;
            }
            match json_text(&line) {
                Ok(payload) => self.add(payload).await?,
                Err(why) => {
                    self.send().await?;
                    let before = format!("{} messages before it were pushed", self.stored);
                    return Err(not_json(&format!("line {} of {place}", at + 1), &line, &format!("{why}; {before}")));
                }
            }
        }
        Ok(())
    }

    async fn add(&mut self, payload: Box<RawValue>) -> Result<(), Failure> {
        self.bytes += payload.get().len();
        self.waiting.push(payload);
        if self.waiting.len() >= AT_ONCE || self.bytes >= BYTES_AT_ONCE { self.send().await } else { Ok(()) }
    }

    async fn send(&mut self) -> Result<(), Failure> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        let items: Vec<_> = self.waiting.drain(..).map(|payload| self.push.item(&payload)).collect();
        self.bytes = 0;
        let answer = self.remote.post("/api/v1/push", format!("{{\"items\":[{}]}}", items.join(","))).await?;
        if self.push.json {
            for result in answer.read::<Vec<&RawValue>>()? {
                output::line(result.get())?;
            }
        }
        let results: Vec<PushResult<'_>> = answer.read()?;
        let refused: Vec<&PushResult<'_>> = results.iter().filter(|result| result.status == "failed").collect();
        for result in &refused {
            output::note(&format!(
                "a message was refused: {}",
                result.error.as_deref().unwrap_or("the server gives no reason")
            ));
        }
        self.refused += refused.len();
        self.stored += results.len() - refused.len();
        if !self.push.json && !self.push.payloads.is_empty() {
            output::print(&table(&results))?;
        }
        Ok(())
    }
}

impl Push {
    /// The payload is sent as it was written: a number of many digits must not be rounded.
    fn item(&self, payload: &RawValue) -> String {
        let mut item = json!({ "queue": self.queue });
        if let Some(partition) = &self.partition {
            item["partition"] = partition.as_str().into();
        }
        if let Some(id) = &self.transaction_id {
            item["transactionId"] = id.as_str().into();
        }
        let item = item.to_string();
        format!("{},\"payload\":{}}}", item.trim_end_matches('}'), payload.get())
    }
}

fn json_text(text: &str) -> Result<Box<RawValue>, String> {
    serde_json::from_str(text).map_err(|error| error.to_string())
}

fn not_json(what: &str, text: &str, why: &str) -> Failure {
    let shown: String = printable(text).chars().take(40).collect();
    Failure::new(
        Exit::WrongUse,
        vec![format!("{what} is no JSON: {shown} ({why}); a text is written with its quotes: '\"hello\"'")],
    )
}

fn table(results: &[PushResult<'_>]) -> String {
    let mut table = Table::new(["STATUS", "MESSAGE ID", "TRANSACTION ID"]);
    for result in results {
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        table.row([result.status.clone(), text(&result.message_id), text(&result.transaction_id)]);
    }
    table.text()
}
