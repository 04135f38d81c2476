//! Makes providers for the suite, each with a schema of its own.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use duroxide::provider_validations::ProviderFactory;
use duroxide::providers::Provider;
use reveille::database::{Database, DatabaseOptions, StatementMode};
use reveille_duroxide::{LongPollConfig, PostgresProvider};
use reveille_testkit::{LoginSettings, Pooler, TestDatabase};
use tokio::sync::{OnceCell, RwLock};
use tokio::task::JoinSet;
use tokio_postgres::Client;

/// One database for the whole suite: providers with different schemas must not disturb each other.
static DATABASE: OnceCell<TestDatabase> = OnceCell::const_new();
/// Every running function holds it; one that needs the machine for itself holds it alone.
static MACHINE: RwLock<()> = RwLock::const_new(());
/// The number of the next schema.
static NEXT: AtomicU32 = AtomicU32::new(1);

pub(crate) struct Factory {
    config: LongPollConfig,
    /// A database behind a transaction pooler, instead of one of the provider's own.
    pooled: Option<(Database, Pooler)>,
    /// The schema of the latest provider, which is the one that the suite examines.
    schema: Mutex<String>,
}

impl Factory {
    pub(crate) fn short() -> Self {
        Self { config: LongPollConfig::default(), pooled: None, schema: Mutex::default() }
    }

    pub(crate) fn waiting() -> Self {
        Self { config: LongPollConfig::on(), pooled: None, schema: Mutex::default() }
    }

    /// With statements that a transaction pooler can carry, through one. `None` where there is no
    /// pooler.
    pub(crate) async fn pooled() -> Option<Self> {
        let direct = DATABASE.get_or_init(TestDatabase::new).await;
        let pooler = Pooler::before(direct, 4, LoginSettings::Refused)?;
        let options = DatabaseOptions::new(pooler.url()).listen_url(direct.url()).statement_mode(StatementMode::Pooled);
        let database = Database::connect(options).await.expect("the pooler can be reached");
        Some(Self { pooled: Some((database, pooler)), ..Self::waiting() })
    }

    pub(crate) async fn provider(&self) -> PostgresProvider {
        let database = DATABASE.get_or_init(TestDatabase::new).await;
        // A name that must be quoted everywhere.
        let schema = format!("Duroxide {}", NEXT.fetch_add(1, Ordering::Relaxed));
        self.schema.lock().expect("no test panics with the lock").clone_from(&schema);
        let options = match &self.pooled {
            Some((pooled, _)) => PostgresProvider::options().database(pooled),
            None => PostgresProvider::options().url(database.url()),
        };
        options.schema(schema).long_poll(self.config).open().await.expect("a provider opens")
    }

    async fn client(&self) -> Client {
        DATABASE.get().expect("a provider was made").client().await
    }

    fn table(&self, name: &str) -> String {
        format!("\"{}\".{name}", self.schema.lock().expect("no test panics with the lock"))
    }
}

/// Runs a function of the suite with each kind of fetch.
pub(crate) async fn in_both_modes<R>(run: impl Fn(Factory) -> R)
where
    R: Future<Output = ()> + Send + 'static,
{
    let _beside_others = MACHINE.read().await;
    each_mode(run).await;
}

/// The same while no other function runs: for those that fail when a fetch takes a tenth of a
/// second.
pub(crate) async fn alone_in_both_modes<R>(run: impl Fn(Factory) -> R)
where
    R: Future<Output = ()> + Send + 'static,
{
    let _alone = MACHINE.write().await;
    each_mode(run).await;
}

/// Runs it with both kinds side by side, and shows which kind failed.
async fn each_mode<R>(run: impl Fn(Factory) -> R)
where
    R: Future<Output = ()> + Send + 'static,
{
    let mut modes = JoinSet::new();
    let short = modes.spawn(run(Factory::short())).id();
    modes.spawn(run(Factory::waiting()));
    let mut failed = Vec::new();
    while let Some(end) = modes.join_next().await {
        if let Err(error) = end {
            failed.push(if error.id() == short { "claim once" } else { "wait" });
        }
    }
    assert!(failed.is_empty(), "failed with fetches that {}", failed.join(" and "));
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
        let spoil = format!("update {} set event = 'not an event' where instance_id = $1", self.table("history"));
        self.client().await.execute(&spoil, &[&instance]).await.expect("history can be spoilt");
    }

    async fn get_max_attempt_count(&self, instance: &str) -> u32 {
        let table = self.table("message");
        let read = format!("select coalesce(max(attempt_count), 0) from {table} where instance_id = $1");
        let row = self.client().await.query_one(&read, &[&instance]).await.expect("attempts can be read");
        u32::try_from(row.get::<_, i32>(0)).expect("attempts are not negative")
    }
}
