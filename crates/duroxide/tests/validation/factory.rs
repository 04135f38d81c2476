//! Makes providers for the suite, each on a database of its own.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use duroxide::provider_validations::ProviderFactory;
use duroxide::providers::Provider;
use reveille_duroxide::{LongPollConfig, PostgresProvider};
use reveille_testkit::TestDatabase;
use tokio::task::JoinSet;

/// A schema whose name must be quoted everywhere.
const SCHEMA: &str = "Duroxide \"store\"";

pub(crate) struct Factory {
    config: LongPollConfig,
    /// The last one is what the suite asks about.
    databases: Mutex<Vec<Arc<TestDatabase>>>,
}

impl Factory {
    pub(crate) fn short() -> Self {
        Self { config: LongPollConfig::default(), databases: Mutex::default() }
    }

    pub(crate) fn waiting() -> Self {
        Self { config: LongPollConfig::on(), databases: Mutex::default() }
    }

    pub(crate) async fn provider(&self) -> PostgresProvider {
        let database = TestDatabase::new().await;
        let options = PostgresProvider::options().url(database.url()).schema(SCHEMA).long_poll(self.config);
        let provider = options.open().await.expect("a provider opens");
        self.databases.lock().unwrap().push(Arc::new(database));
        provider
    }

    fn latest(&self) -> Arc<TestDatabase> {
        Arc::clone(self.databases.lock().unwrap().last().expect("a provider was made"))
    }
}

/// Runs a function of the suite with each kind of fetch, and says which kind failed.
pub(crate) async fn in_both_modes<R>(run: impl Fn(Factory) -> R)
where
    R: Future<Output = ()> + Send + 'static,
{
    let mut modes = JoinSet::new();
    let short = modes.spawn(run(Factory::short())).id();
    modes.spawn(run(Factory::waiting()));
    let mut failed = Vec::new();
    while let Some(end) = modes.join_next().await {
        if let Err(error) = end {
            failed.push(if error.id() == short { "looking once" } else { "waiting" });
        }
    }
    assert!(failed.is_empty(), "failed with fetches that are {}", failed.join(" and "));
}

#[async_trait]
impl ProviderFactory for Factory {
    async fn create_provider(&self) -> Arc<dyn Provider> {
        Arc::new(self.provider().await)
    }

    fn lock_timeout(&self) -> Duration {
        Duration::from_secs(1)
    }

    fn short_poll_threshold(&self) -> Duration {
        Duration::from_millis(500)
    }

    async fn corrupt_instance_history(&self, instance: &str) {
        let spoil = r#"update "Duroxide ""store""".history set event = 'not an event' where instance_id = $1"#;
        self.latest().client().await.execute(spoil, &[&instance]).await.expect("history can be spoilt");
    }

    async fn get_max_attempt_count(&self, instance: &str) -> u32 {
        let ask = r#"select coalesce(max(attempt_count), 0) from "Duroxide ""store""".message where instance_id = $1"#;
        let row = self.latest().client().await.query_one(ask, &[&instance]).await.expect("attempts can be read");
        u32::try_from(row.get::<_, i32>(0)).expect("attempts are not negative")
    }
}
