//! Several providers in one database.

use std::time::Duration;

use duroxide::providers::{Provider, ProviderAdmin};
use reveille::database::{Database, DatabaseError, DatabaseOptions, Uninstall};
use reveille_duroxide::{PostgresProvider, ProviderOpenError};
use reveille_testkit::TestDatabase;

use crate::counted::Counted;
use crate::fault_harness::{LONG, WAIT, activity, end_turn, proven, start, take_activity, take_turn};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn providers_of_two_schemas_share_a_database_and_do_not_wake_each_other() {
    let server = Counted::start().await;
    let database = Database::connect(DatabaseOptions::new(server.url())).await.unwrap();
    database.migrate().await.unwrap();
    let busy = proven(PostgresProvider::options().database(&database).schema("busy")).await;
    let quiet = proven(PostgresProvider::options().database(&database).schema("quiet")).await;
    let far = proven(PostgresProvider::options().url(server.url()).schema("quiet")).await;
    let waits = async |provider: &PostgresProvider| take_turn(provider, LONG, WAIT).await;
    let mut quiet_fetches = (Box::pin(waits(&quiet)), Box::pin(waits(&far)));
    // Until both have claimed once and sleep.
    let asleep = tokio::time::timeout(Duration::from_secs(1), async {
        tokio::select! { _ = &mut quiet_fetches.0 => {}, _ = &mut quiet_fetches.1 => {} }
    });
    assert!(asleep.await.is_err());
    server.forget().await;

    for number in 0..5 {
        let name = format!("order-{number}");
        busy.enqueue_for_orchestrator(start(&name), None).await.unwrap();
        let token = take_turn(&busy, LONG, WAIT).await.unwrap();
        end_turn(&busy, &name, &token, Vec::new()).await.unwrap();
        busy.enqueue_for_worker(activity(None)).await.unwrap();
        assert!(take_activity(&busy, LONG, WAIT, None).await.is_some());
    }

    assert_eq!(server.turn_claims("quiet").await, 0, "no fetch was woken for another schema");
    assert!(server.turn_claims("busy").await >= 5);
    assert_eq!(quiet.list_instances().await.unwrap(), Vec::<String>::new());
    assert_eq!(busy.list_instances().await.unwrap().len(), 5);
    quiet.enqueue_for_orchestrator(start("order"), None).await.unwrap();
    tokio::select! {
        found = &mut quiet_fetches.0 => assert!(found.is_some()),
        found = &mut quiet_fetches.1 => assert!(found.is_some()),
    }
}

#[tokio::test]
async fn tables_from_before_the_storage_was_reset_are_refused_and_left_as_they_are() {
    for (schema, version) in [("duroxide", 2), ("reveille", 7)] {
        let db = TestDatabase::empty().await;
        db.make_retired_schema(schema, version).await;
        let before = db.contents_of_schema(schema).await;

        let refused = PostgresProvider::new(&db.url()).await.unwrap_err();

        assert!(matches!(refused, ProviderOpenError::Database(DatabaseError::SchemaRetired { .. })), "{refused:?}");
        assert!(refused.to_string().contains(&format!("`reveille migrate uninstall --schema {schema}`")), "{refused}");
        assert_eq!(db.contents_of_schema(schema).await, before);
        let options = DatabaseOptions::new(db.url()).schema(schema);
        let old = Database::connect_to_any_schema(options).await.unwrap();
        old.uninstall(Uninstall::Carefully).await.unwrap();
        old.close().await;
        PostgresProvider::new(&db.url()).await.unwrap().close().await;
    }
}

#[tokio::test]
async fn a_shared_database_with_old_tables_is_refused() {
    let db = TestDatabase::new().await;
    db.make_retired_schema("duroxide", 2).await;
    let shared = Database::connect(DatabaseOptions::new(db.url())).await.unwrap();

    let refused = PostgresProvider::options().database(&shared).open().await.unwrap_err();

    assert!(
        matches!(refused, ProviderOpenError::Database(DatabaseError::SchemaRetired { found: 2, oldest: 3, .. })),
        "{refused:?}"
    );
    shared.close().await;
}
