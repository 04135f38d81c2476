//! `reveille tail`: shows what is pushed from now on, with a consumer group of its own.
//!
//! Promises that no other group misses a message because of it, and that it deletes its group when
//! it ends, unless it or the server is killed.

use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;
use uuid::Uuid;

use super::pop::{Message, Popped, is_there, pop_path};
use super::signals::Signals;
use crate::args::messages::Tail;
use crate::exit::{Exit, Failure};
use crate::output::{self, Reader};
use crate::remote::{Answer, Remote, RemoteError, encoded, query};
use crate::table::printable;

/// How long one request waits.
const WAIT: Duration = Duration::from_secs(25);
/// Before the next request to a server that does not answer.
const PAUSE: Duration = Duration::from_secs(1);
const BATCH: &str = "100";

pub(crate) async fn run(tail: Tail, remote: &Remote<'_>) -> Result<Exit, Failure> {
    let mut signals = Signals::watch()?;
    if !is_there(&tail.queue, remote).await? {
        return Err(Failure::refused(format!("no queue is called {}", printable(&tail.queue))));
    }
    let follower = Follower { group: format!("reveille-tail-{}", Uuid::now_v7()), tail: &tail, remote };
    // The first pop creates the group, which begins at this moment.
    follower.pop(None).await?;
    output::note(&format!("following {} from now on; Ctrl-C ends", printable(&tail.queue)));
    let ended = tokio::select! {
        () = signals.next() => Ok(()),
        ended = follower.follow() => ended,
    };
    let forgotten = follower.forget().await;
    ended?;
    forgotten?;
    Ok(Exit::Done)
}

struct Follower<'t> {
    group: String,
    tail: &'t Tail,
    remote: &'t Remote<'t>,
}

#[derive(Deserialize)]
struct AsTheyCame<'a> {
    #[serde(borrow)]
    messages: Vec<&'a RawValue>,
}

impl Follower<'_> {
    /// Runs until standard output has no reader any more.
    async fn follow(&self) -> Result<(), Failure> {
        let mut is_away = false;
        loop {
            match self.pop(Some(WAIT)).await {
                Ok(answer) => {
                    is_away = false;
                    if output::print_for(&self.lines(&answer)?)? == Reader::Gone {
                        return Ok(());
                    }
                }
                Err(RemoteError::Away(why)) => {
                    if !is_away {
                        output::note(&format!("{why}; trying again until it is back"));
                    }
                    is_away = true;
                    tokio::time::sleep(PAUSE).await;
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    async fn pop(&self, wait: Option<Duration>) -> Result<Answer, RemoteError> {
        let timeout = wait.map(|wait| wait.as_millis().to_string());
        let parameters = [
            ("consumerGroup", Some(self.group.as_str())),
            ("subscriptionMode", Some("new")),
            ("autoAck", Some("true")),
            ("batch", Some(BATCH)),
            ("partitions", Some(BATCH)),
            ("wait", wait.map(|_| "true")),
            ("timeout", timeout.as_deref()),
        ];
        let path = format!("{}{}", pop_path(&self.tail.queue, self.tail.partition.as_deref()), query(&parameters));
        self.remote.get_waiting(&path, wait.unwrap_or_default()).await
    }

    fn lines(&self, answer: &Answer) -> Result<String, RemoteError> {
        if answer.is_empty() {
            return Ok(String::new());
        }
        if self.tail.json {
            let came: AsTheyCame<'_> = answer.read()?;
            return Ok(came.messages.iter().flat_map(|message| [message.get(), "\n"]).collect());
        }
        let popped: Popped<'_> = answer.read()?;
        Ok(popped.messages.iter().map(as_line).collect())
    }

    async fn forget(&self) -> Result<(), RemoteError> {
        let path = format!("/api/v1/consumer-groups/{}/queues/{}", encoded(&self.group), encoded(&self.tail.queue));
        self.remote.delete(&path).await.map(drop)
    }
}

fn as_line(message: &Message<'_>) -> String {
    let Message { created_at, partition, transaction_id, data, .. } = message;
    format!("{created_at}  {}  {}  {}\n", printable(partition), printable(transaction_id), printable(data.get()))
}
