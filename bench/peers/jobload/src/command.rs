//! Reads commands and answers them, one at a time.

use std::sync::Arc;

use anyhow::Context;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};

use crate::books::Books;
use crate::{Queue, Settings, Working, enqueue, steady};

/// Carries out the commands on standard input on a queue, until there are no more.
pub async fn serve(queue: impl Queue) -> anyhow::Result<()> {
    let mut child = Child { queue: Arc::new(queue), working: None, books: Arc::new(Books::new(0)) };
    let mut commands = BufReader::new(tokio::io::stdin()).lines();
    let mut out = tokio::io::stdout();
    while let Some(line) = commands.next_line().await? {
        let command: Value = serde_json::from_str(&line)?;
        let answer = match child.obey(&command).await {
            Ok(answer) => json!({ "ok": answer }),
            Err(error) => json!({ "error": format!("{error:#}") }),
        };
        out.write_all(format!("{answer}\n").as_bytes()).await?;
        out.flush().await?;
    }
    Ok(())
}

struct Child {
    queue: Arc<dyn Queue>,
    working: Option<Box<dyn Working>>,
    books: Arc<Books>,
}

impl Child {
    async fn obey(&mut self, command: &Value) -> anyhow::Result<Value> {
        match command["do"].as_str() {
            Some("install") => {
                self.queue.install().await?;
                Ok(json!({ "ways": self.queue.ways() }))
            }
            Some("enqueue") => enqueue::run(self.queue.as_ref(), &serde_json::from_value(command.clone())?).await,
            Some("enqueue_steadily") => steady::run(&self.queue, &serde_json::from_value(command.clone())?).await,
            Some("work") => self.work(command).await,
            Some("count") => Ok(json!({ "ran": self.books.count() })),
            Some("began") => {
                let (from, count) = (number(command, "from")?, number(command, "count")?);
                Ok(json!({ "began": self.books.began(from..from + count) }))
            }
            Some("stop") => {
                if let Some(working) = self.working.take() {
                    working.stop().await?;
                }
                // If this process has no part in the next measurement, it has run nothing there.
                let books = std::mem::replace(&mut self.books, Arc::new(Books::new(0)));
                Ok(json!({ "ran": books.count(), "twice": books.twice(), "seen": books.seen() }))
            }
            Some("left") => Ok(json!({ "left": self.queue.left().await? })),
            Some("clear") => {
                self.queue.clear().await?;
                Ok(Value::Null)
            }
            other => anyhow::bail!("there is no command {other:?}"),
        }
    }

    async fn work(&mut self, command: &Value) -> anyhow::Result<Value> {
        anyhow::ensure!(self.working.is_none(), "this process has a worker already");
        let queues: Vec<String> = serde_json::from_value(command["queues"].clone())?;
        let settings: Settings = serde_json::from_value(command["settings"].clone())?;
        self.books = Arc::new(Books::new(number(command, "limit")?));
        self.working = Some(self.queue.work(&queues, settings, Arc::clone(&self.books)).await?);
        Ok(Value::Null)
    }
}

fn number(command: &Value, name: &str) -> anyhow::Result<usize> {
    let number = command[name].as_u64().with_context(|| format!("{name} is missing in {command}"))?;
    Ok(usize::try_from(number)?)
}
