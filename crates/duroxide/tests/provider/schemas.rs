//! Several providers in one database.

use std::time::Duration;

use duroxide::providers::{Provider, ProviderAdmin};
use reveille::database::{Database, DatabaseOptions};
use reveille_duroxide::PostgresProvider;

use crate::counted::Counted;
use crate::fault_harness::{LONG, WAIT, activity, end_turn, proven, start, take_activity, take_turn};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn providers_of_two_schemas_share_a_database_and_hear_nothing_of_each_other() {
    let server = Counted::start().await;
    let database = Database::connect(DatabaseOptions::new(server.url())).await.unwrap();
    database.migrate().await.unwrap();
    let busy = proven(PostgresProvider::options().database(&database).schema("busy")).await;
    let quiet = proven(PostgresProvider::options().database(&database).schema("quiet")).await;
    let far = proven(PostgresProvider::options().url(server.url()).schema("quiet")).await;
    let waits = async |provider: &PostgresProvider| take_turn(provider, LONG, WAIT).await;
    let mut quiet_fetches = (Box::pin(waits(&quiet)), Box::pin(waits(&far)));
    // Until both have looked and sleep.
    let looked = tokio::time::timeout(Duration::from_secs(1), async {
        tokio::select! { _ = &mut quiet_fetches.0 => {}, _ = &mut quiet_fetches.1 => {} }
    });
    assert!(looked.await.is_err());
    server.forget().await;

    for number in 0..5 {
        let name = format!("order-{number}");
        busy.enqueue_for_orchestrator(start(&name), None).await.unwrap();
        let token = take_turn(&busy, LONG, WAIT).await.unwrap();
        end_turn(&busy, &name, &token, Vec::new()).await.unwrap();
        busy.enqueue_for_worker(activity(None)).await.unwrap();
        assert!(take_activity(&busy, LONG, WAIT, None).await.is_some());
    }

    assert_eq!(server.looks("quiet").await, 0, "nobody was woken for another schema");
    assert!(server.looks("busy").await >= 5);
    assert_eq!(quiet.list_instances().await.unwrap(), Vec::<String>::new());
    assert_eq!(busy.list_instances().await.unwrap().len(), 5);
    quiet.enqueue_for_orchestrator(start("order"), None).await.unwrap();
    tokio::select! {
        found = &mut quiet_fetches.0 => assert!(found.is_some()),
        found = &mut quiet_fetches.1 => assert!(found.is_some()),
    }
}
