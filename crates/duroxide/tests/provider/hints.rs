//! What one program tells the others.

use std::time::Duration;

use duroxide::providers::Provider;
use reveille_testkit::TestDatabase;
use tokio::sync::mpsc::{Receiver, channel};
use tokio::task::JoinSet;
use tokio_postgres::{AsyncMessage, Client, NoTls};

use crate::fault_harness::{activity, open, start};

/// Hears every hint of a database.
struct Ear {
    heard: Receiver<String>,
    _client: Client,
    _reading: JoinSet<()>,
}

impl Ear {
    async fn on(database: &TestDatabase, name: &str) -> Self {
        let (client, mut wire) =
            tokio_postgres::connect(&database.url(), NoTls).await.expect("the server accepts an ear");
        let (tell, heard) = channel(64);
        let mut reading = JoinSet::new();
        reading.spawn(async move {
            while let Some(Ok(message)) = std::future::poll_fn(|context| wire.poll_message(context)).await {
                if let AsyncMessage::Notification(said) = message {
                    let _ = tell.send(said.payload().to_owned()).await;
                }
            }
        });
        client.batch_execute(&format!("listen {name}")).await.expect("it listens");
        Self { heard, _client: client, _reading: reading }
    }

    /// The line about `queue`, as soon as somebody says it.
    async fn until(&mut self, queue: &str) -> String {
        let found = tokio::time::timeout(Duration::from_secs(20), async {
            loop {
                let said = self.heard.recv().await.expect("the ear hears as long as the test runs");
                if let Some(line) = said.lines().find(|line| line.starts_with(queue)) {
                    return line.to_owned();
                }
            }
        });
        found.await.expect("somebody says it")
    }
}

#[tokio::test]
async fn messages_and_activities_are_announced_to_other_programs_and_delays_with_their_delay() {
    let database = TestDatabase::new().await;
    let (here, _there) = (open(&database).await, open(&database).await);
    let mut ear = Ear::on(&database, here.database().hint_channel()).await;

    here.enqueue_for_orchestrator(start("order"), None).await.unwrap();
    assert_eq!(ear.until("duroxide-turns-").await, "duroxide-turns-duroxide all");

    here.enqueue_for_worker(activity(None)).await.unwrap();
    assert_eq!(ear.until("duroxide-activities-").await, "duroxide-activities-duroxide all");

    here.enqueue_for_orchestrator(start("later"), Some(Duration::from_secs(60))).await.unwrap();
    let line = ear.until("duroxide-turns-").await;
    let delay_ms: u64 = line.strip_prefix("duroxide-turns-duroxide all ").unwrap().parse().unwrap();
    assert!((50_000..=60_000).contains(&delay_ms), "{delay_ms}");
}

/// A trigger that notifies would do so inside the producer's commit, under a lock on the whole
/// database.
#[tokio::test]
async fn no_table_has_a_trigger() {
    let database = TestDatabase::new().await;
    let provider = open(&database).await;

    let ask = "select count(*) from pg_trigger t join pg_class c on c.oid = t.tgrelid
         where not t.tgisinternal and c.relnamespace = $1::text::regnamespace";
    let triggers: i64 = database.client().await.query_one(ask, &[&provider.schema_name()]).await.unwrap().get(0);

    assert_eq!(triggers, 0);
}
