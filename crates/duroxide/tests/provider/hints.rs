//! The hints that one program sends to the others.

use std::time::Duration;

use duroxide::providers::Provider;
use reveille_testkit::TestDatabase;
use tokio::sync::mpsc::{Receiver, channel};
use tokio::task::JoinSet;
use tokio_postgres::{AsyncMessage, Client, NoTls};

use crate::fault_harness::{activity, open, start};

/// Receives every hint of a database.
struct HintReceiver {
    hints: Receiver<String>,
    _client: Client,
    _reading: JoinSet<()>,
}

impl HintReceiver {
    async fn on(database: &TestDatabase, channel_name: &str) -> Self {
        let (client, mut wire) =
            tokio_postgres::connect(&database.url(), NoTls).await.expect("the server accepts a connection");
        let (sender, hints) = channel(64);
        let mut reading = JoinSet::new();
        reading.spawn(async move {
            while let Some(Ok(message)) = std::future::poll_fn(|context| wire.poll_message(context)).await {
                if let AsyncMessage::Notification(notification) = message {
                    let _ = sender.send(notification.payload().to_owned()).await;
                }
            }
        });
        client.batch_execute(&format!("listen {channel_name}")).await.expect("it listens");
        Self { hints, _client: client, _reading: reading }
    }

    /// The line about `queue`, as soon as it arrives.
    async fn until(&mut self, queue: &str) -> String {
        let found = tokio::time::timeout(Duration::from_secs(20), async {
            loop {
                let hint = self.hints.recv().await.expect("hints are received as long as the test runs");
                if let Some(line) = hint.lines().find(|line| line.starts_with(queue)) {
                    return line.to_owned();
                }
            }
        });
        found.await.expect("a hint about the queue arrives")
    }
}

#[tokio::test]
async fn messages_and_activities_are_announced_to_other_programs_and_delays_with_their_delay() {
    let database = TestDatabase::new().await;
    let (here, _there) = (open(&database).await, open(&database).await);
    let mut hints = HintReceiver::on(&database, here.database().hint_channel()).await;

    here.enqueue_for_orchestrator(start("order"), None).await.unwrap();
    assert_eq!(hints.until("duroxide-turns-").await, "duroxide-turns-duroxide all");

    here.enqueue_for_worker(activity(None)).await.unwrap();
    assert_eq!(hints.until("duroxide-activities-").await, "duroxide-activities-duroxide all");

    here.enqueue_for_orchestrator(start("later"), Some(Duration::from_secs(60))).await.unwrap();
    let line = hints.until("duroxide-turns-").await;
    let delay_ms: u64 = line.strip_prefix("duroxide-turns-duroxide all ").unwrap().parse().unwrap();
    assert!((50_000..=60_000).contains(&delay_ms), "{delay_ms}");
}

/// A trigger that notifies would do so inside the producer's commit, under a lock on the whole
/// database.
#[tokio::test]
async fn no_table_has_a_trigger() {
    let database = TestDatabase::new().await;
    let provider = open(&database).await;

    let count = "select count(*) from pg_trigger t join pg_class c on c.oid = t.tgrelid
         where not t.tgisinternal and c.relnamespace = $1::text::regnamespace";
    let triggers: i64 = database.client().await.query_one(count, &[&provider.schema_name()]).await.unwrap().get(0);

    assert_eq!(triggers, 0);
}
