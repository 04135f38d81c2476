//! duroxide's own stress test, for a short time. The bench measures figures.

use std::sync::Arc;

use async_trait::async_trait;
use duroxide::provider_stress_tests::StressTestConfig;
use duroxide::provider_stress_tests::parallel_orchestrations::{
    ProviderStressFactory, run_parallel_orchestrations_test_with_config,
};
use duroxide::providers::Provider;
use reveille_duroxide::PostgresProvider;
use reveille_testkit::TestDatabase;

struct Factory(TestDatabase);

#[async_trait]
impl ProviderStressFactory for Factory {
    async fn create_provider(&self) -> Arc<dyn Provider> {
        Arc::new(PostgresProvider::options().url(self.0.url()).open().await.expect("a provider opens"))
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_orchestration_fails_under_load() {
    let factory = Factory(TestDatabase::new().await);
    let config = StressTestConfig {
        max_concurrent: 20,
        duration_secs: 2,
        orch_concurrency: 4,
        worker_concurrency: 4,
        ..StressTestConfig::default()
    };

    let result = run_parallel_orchestrations_test_with_config(&factory, config).await.expect("the stress test runs");

    assert!(result.completed > 0);
    assert_eq!((result.failed, result.completed), (0, result.launched));
}
