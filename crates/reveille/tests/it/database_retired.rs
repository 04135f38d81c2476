//! A schema from before the storage was reset: refused by everything but its removal, and never
//! altered.

use reveille::database::{Database, DatabaseError, StatementMode, Uninstall, migration_script};
use reveille_testkit::TestDatabase;

use crate::support::{options, sessions, soon, until};

const SENTENCE: &str = "schema reveille is at version 7 and cannot be upgraded, only 8 and later can: remove it with all \
                        its data by `reveille migrate uninstall --schema reveille`, then start again";

async fn retired() -> TestDatabase {
    let db = TestDatabase::empty().await;
    db.make_retired_schema("reveille", 7).await;
    db
}

#[tokio::test]
async fn it_is_refused_when_we_connect_and_nothing_is_left_open() {
    for mode in [StatementMode::Direct, StatementMode::Pooled] {
        let db = retired().await;
        let before = db.contents_of_schema("reveille").await;

        let error = soon(Database::connect(options(&db).statement_mode(mode))).await.unwrap_err();

        assert_eq!(error.to_string(), SENTENCE);
        assert!(matches!(error, DatabaseError::SchemaRetired { found: 7, oldest: 8, .. }) && !error.is_transient());
        until("every session is gone", async || sessions(&db).await == 0).await;
        assert_eq!(db.contents_of_schema("reveille").await, before);
    }
}

#[tokio::test]
async fn it_is_refused_by_migrate_and_by_the_check_and_stays_as_it_was() {
    let db = retired().await;
    let before = db.contents_of_schema("reveille").await;
    let database = soon(Database::connect_to_any_schema(options(&db))).await.unwrap();

    let migrated = soon(database.migrate()).await.unwrap_err();
    let checked = soon(database.check_schema()).await.unwrap_err();
    let status = soon(database.schema_status()).await.unwrap();

    assert_eq!((migrated.to_string().as_str(), checked.to_string().as_str()), (SENTENCE, SENTENCE));
    assert_eq!((status.found, status.oldest, status.pending.len()), (7, 8, 0));
    assert_eq!(db.contents_of_schema("reveille").await, before);
    database.close().await;
}

/// Also with a psql that goes on after an error.
#[tokio::test]
async fn the_printed_script_leaves_it_as_it_was() {
    let db = retired().await;
    let before = db.contents_of_schema("reveille").await;
    let admin = db.client().await;

    for from in [0, 3, 7, 8, 10] {
        let script = migration_script(&"reveille".parse().unwrap(), from);
        for transaction in script.split_inclusive("commit;\n") {
            assert!(admin.batch_execute(transaction).await.is_err(), "{transaction}");
            admin.batch_execute("rollback").await.unwrap();
        }
    }

    assert_eq!(db.contents_of_schema("reveille").await, before);
}

#[tokio::test]
async fn it_can_be_removed_and_created_again() {
    let db = retired().await;
    let database = soon(Database::connect_to_any_schema(options(&db))).await.unwrap();

    let removed = soon(database.uninstall(Uninstall::Carefully)).await.unwrap();

    let mut dropped = removed.dropped;
    dropped.sort();
    assert_eq!(
        dropped,
        ["function reveille.remember()", "table reveille.function", "table reveille.migration", "table reveille.queue"]
    );
    assert!(removed.left.is_empty());
    soon(database.migrate()).await.unwrap();
    database.close().await;
    soon(Database::connect(options(&db))).await.unwrap().close().await;
}
