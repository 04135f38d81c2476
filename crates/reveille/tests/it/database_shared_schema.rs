//! A schema that others live in too: what they made there is never touched.

use reveille::database::{Database, DatabaseError, Uninstall};
use reveille_testkit::TestDatabase;

use crate::support::{migrated, options, soon};

/// Migrate a schema in which `theirs` was made before; returns the error and how many objects there
/// are afterwards.
async fn refused(theirs: &str) -> (String, i64) {
    let db = TestDatabase::empty().await;
    let admin = db.client().await;
    admin.batch_execute(&format!("create schema reveille; {theirs}")).await.unwrap();
    let database = soon(Database::connect(options(&db))).await.unwrap();

    let error = soon(database.migrate()).await.unwrap_err();

    assert!(matches!(error, DatabaseError::NameTaken { .. }), "{error:?}");
    assert!(matches!(database.check_schema().await, Err(DatabaseError::SchemaMissing { .. })));
    database.close().await;
    let objects = "select (select count(*) from pg_class where relnamespace = n.oid) + \
                   (select count(*) from pg_proc where pronamespace = n.oid) from pg_namespace n where nspname = 'reveille'";
    (error.to_string(), admin.query_one(objects, &[]).await.unwrap().get(0))
}

#[tokio::test]
async fn a_function_of_theirs_under_a_name_of_ours_is_neither_replaced_nor_dropped() {
    let theirs = "create function reveille.version(int) returns int language sql as 'select 42';
                  create function reveille.version() returns text language sql as $$ select 'theirs' $$";

    let (sentence, objects) = refused(theirs).await;

    assert_eq!(
        sentence,
        "schema reveille has a name that Reveille needs for itself, function reveille.version(), \
         function reveille.version(integer): choose another schema, or rename it"
    );
    assert_eq!(objects, 2);
}

#[tokio::test]
async fn a_table_or_view_of_theirs_under_a_name_of_ours_is_left_alone() {
    for theirs in ["create table reveille.migration (id int8)", "create view reveille.migration as select 1 as one"] {
        let (sentence, objects) = refused(theirs).await;

        assert!(sentence.contains("relation \"migration\" already exists"), "{sentence}");
        assert_eq!(objects, 1);
    }
}

#[tokio::test]
async fn a_function_of_theirs_that_came_later_under_a_name_of_ours_survives_a_change_and_an_uninstall() {
    let db = TestDatabase::empty().await;
    let database = migrated(options(&db)).await;
    let admin = db.client().await;
    let theirs = "create function reveille.version(int) returns int language sql as 'select 42';
                  update reveille.function set hash = 'older' where name = 'version'";
    admin.batch_execute(theirs).await.unwrap();

    let replaced = soon(database.migrate()).await.unwrap();
    let removed = soon(database.uninstall(Uninstall::Forced)).await.unwrap();

    assert_eq!(replaced.functions, ["version"]);
    assert_eq!(removed.left, ["function reveille.version(integer)"]);
    assert!(removed.dropped.contains(&"function reveille.version()".to_owned()), "{removed:?}");
    admin.batch_execute("select reveille.version(1)").await.unwrap();
    database.close().await;
}

#[tokio::test]
async fn what_has_other_names_is_no_hindrance() {
    let db = TestDatabase::empty().await;
    let admin = db.client().await;
    admin.batch_execute("create schema reveille; create table reveille.mine (a int)").await.unwrap();
    let database = soon(Database::connect(options(&db))).await.unwrap();

    soon(database.migrate()).await.unwrap();

    database.check_schema().await.unwrap();
    database.close().await;
}
