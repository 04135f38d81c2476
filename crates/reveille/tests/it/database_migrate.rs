//! Migrations: once, whatever happens at the same time; undone without a trace.

use std::time::Duration;

use reveille::database::{
    Database, DatabaseError, DatabaseOptions, SchemaName, Statement, StatementMode, Uninstall, migration_script,
    schema_fingerprint,
};
use reveille_testkit::TestDatabase;

use crate::support::{migrated, options, soon, until, with_causes};

static VERSION: Statement = Statement { name: "test/version", sql: "select {schema}.version()", types: &[] };

async fn version(database: &Database) -> String {
    let row = database.acquire().await.unwrap().query_opt(&VERSION, &[]).await.unwrap();
    row.unwrap().get(0)
}

/// Pretend that a later release was here.
async fn apply_unknown(db: &TestDatabase, how_many: i32) {
    let admin = db.client().await;
    let insert = "insert into reveille.migration (version, name, checksum, made) \
                  select max(version) + $1, 'later', 'x', '{}' from reveille.migration";
    admin.execute(insert, &[&how_many]).await.unwrap();
}

#[tokio::test]
async fn a_schema_is_made_once_and_then_left_alone() {
    let db = TestDatabase::empty().await;
    let database = soon(Database::connect(options(&db))).await.unwrap();

    assert!(matches!(database.check_schema().await, Err(DatabaseError::SchemaMissing { .. })));
    let first = soon(database.migrate()).await.unwrap();
    let second = soon(database.migrate()).await.unwrap();

    assert_eq!(first.migrations[0], (8, "engine"));
    assert!(first.functions.contains(&"version".to_owned()));
    assert!(second.migrations.is_empty() && second.functions.is_empty(), "{second:?}");
    database.check_schema().await.unwrap();
    let status = database.schema_status().await.unwrap();
    assert_eq!((status.found, status.pending.len(), status.changed.len()), (status.known, 0, 0));
    assert_eq!(version(&database).await, status.known.to_string());
    assert_eq!(schema_fingerprint().len(), 64);
    database.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_migrators_at_once_make_one_schema() {
    let db = TestDatabase::empty().await;
    let mut migrators = tokio::task::JoinSet::new();
    for _ in 0..10 {
        let connecting = Database::connect(options(&db));
        migrators.spawn(async move {
            let database = connecting.await.unwrap();
            let migrated = database.migrate().await.unwrap();
            database.close().await;
            migrated
        });
    }

    let migrated = soon(migrators.join_all()).await;

    let applied: usize = migrated.iter().map(|one| one.migrations.len()).sum();
    let replaced: usize = migrated.iter().map(|one| one.functions.len()).sum();
    let database = soon(Database::connect(options(&db))).await.unwrap();
    let status = database.schema_status().await.unwrap();
    assert_eq!(applied, status.applied.len());
    let recorded = "select count(*) from reveille.function";
    let recorded: i64 = db.client().await.query_one(recorded, &[]).await.unwrap().get(0);
    assert_eq!(i64::try_from(replaced).unwrap(), recorded);
    database.close().await;
}

#[tokio::test]
async fn awkward_names_are_schemas_like_any_other_in_both_modes() {
    let db = TestDatabase::empty().await;
    let long = "x".repeat(63);
    let names = ["we\"ird Näme", &long, "UPPER", "select", "it's $1 {schema}", "a$$b", "line\nbreak", "back\\slash"];
    for name in names {
        for mode in [StatementMode::Direct, StatementMode::Pooled] {
            let database = migrated(options(&db).schema(name).statement_mode(mode)).await;
            let known = database.schema_status().await.unwrap().known;
            assert_eq!(version(&database).await, known.to_string(), "{name}");
            soon(database.uninstall(Uninstall::Carefully)).await.unwrap();
            database.close().await;
        }
    }
}

#[tokio::test]
async fn a_schema_newer_by_one_is_tolerated_and_newer_by_two_is_refused() {
    let db = TestDatabase::empty().await;
    let database = migrated(options(&db)).await;

    apply_unknown(&db, 1).await;
    database.check_schema().await.unwrap();
    assert!(soon(database.migrate()).await.unwrap().migrations.is_empty());

    apply_unknown(&db, 1).await;
    let error = database.check_schema().await.unwrap_err();
    let status = database.schema_status().await.unwrap();
    assert_eq!(status.found, status.known + 2);
    assert_eq!(
        error.to_string(),
        format!(
            "schema reveille is at version {}, this program knows {} and tolerates one more: upgrade the program",
            status.found, status.known
        )
    );
    assert!(matches!(soon(database.migrate()).await, Err(DatabaseError::SchemaTooNew { .. })));
    database.close().await;
}

#[tokio::test]
async fn a_migration_whose_text_was_changed_is_refused() {
    let db = TestDatabase::empty().await;
    let database = migrated(options(&db)).await;
    let admin = db.client().await;
    admin.batch_execute("update reveille.migration set checksum = 'another' where version = 8").await.unwrap();

    let error = soon(database.migrate()).await.unwrap_err();

    assert!(error.to_string().starts_with("migration 8 was applied to schema reveille with another text"), "{error}");
    assert_eq!(database.schema_status().await.unwrap().changed, [8]);
    database.close().await;
}

#[tokio::test]
async fn a_changed_function_is_replaced_whole_and_its_old_signatures_go() {
    let db = TestDatabase::empty().await;
    let database = migrated(options(&db)).await;
    let admin = db.client().await;
    let old = "create role reader; grant execute on function reveille.version() to reader; \
               create function reveille.version(old int) returns text language sql as 'select ''old'''; \
               create function reveille.gone() returns int language sql as 'select 1'; \
               comment on function reveille.version(int) is 'Reveille: old'; \
               comment on function reveille.gone() is 'Reveille: gone'; \
               insert into reveille.function (name, hash, release) values ('gone', 'x', '0.0.1'); \
               update reveille.function set hash = 'x'";
    admin.batch_execute(&old.replace("reader", &format!("reader_{}", db.name()))).await.unwrap();

    let migrated = soon(database.migrate()).await.unwrap();

    for name in ["gone", "version"] {
        assert!(migrated.functions.contains(&name.to_owned()), "{migrated:?}");
    }
    let left = "select count(*), bool_and(has_function_privilege($1, p.oid, 'execute')) from pg_proc p \
                where pronamespace = 'reveille'::regnamespace and proname in ('version', 'gone')";
    let left = admin.query_one(left, &[&format!("reader_{}", db.name())]).await.unwrap();
    assert_eq!((left.get::<_, i64>(0), left.get::<_, bool>(1)), (1, true));
    database.close().await;
}

#[tokio::test]
async fn an_older_release_leaves_the_functions_of_a_newer_one_alone() {
    let db = TestDatabase::empty().await;
    let database = migrated(options(&db)).await;
    let admin = db.client().await;
    admin.batch_execute("update reveille.function set hash = 'newer', release = '999.0.0'").await.unwrap();

    let migrated = soon(database.migrate()).await.unwrap();

    assert!(migrated.functions.is_empty());
    database.close().await;
}

#[tokio::test]
async fn asking_where_a_schema_stands_has_an_end_when_the_server_falls_silent() {
    let db = TestDatabase::new().await;
    let (proxy, url) = db.proxied().await;
    let limits = DatabaseOptions::new(url).statement_timeout(Duration::from_secs(3));
    let database = soon(Database::connect(limits)).await.unwrap();
    let (holder, admin) = (db.client().await, db.client().await);
    holder.batch_execute("begin; lock table reveille.migration").await.unwrap();
    let silence = async {
        let waits = "select count(*) from pg_locks where not granted and relation = 'reveille.migration'::regclass";
        until("it waits", async || admin.query_one(waits, &[]).await.unwrap().get::<_, i64>(0) == 1).await;
        proxy.half_open();
    };

    let (status, ()) = tokio::join!(soon(database.schema_status()), silence);

    assert!(matches!(status, Err(DatabaseError::Timeout { cause: None, .. })), "{status:?}");
    database.close().await;
}

#[tokio::test]
async fn the_printed_script_makes_the_same_schema() {
    let db = TestDatabase::empty().await;
    let name = "by 'hand' $1";
    let schema: SchemaName = name.parse().unwrap();
    let admin = db.client().await;
    admin.batch_execute(&migration_script(&schema, 0)).await.unwrap();
    let database = soon(Database::connect(options(&db).schema(name))).await.unwrap();

    let migrated = soon(database.migrate()).await.unwrap();

    assert!(migrated.migrations.is_empty() && migrated.functions.is_empty(), "{migrated:?}");
    let removed = soon(database.uninstall(Uninstall::Carefully)).await.unwrap();
    assert!(removed.dropped.len() >= 3 && removed.left.is_empty(), "{removed:?}");
    database.close().await;
}

#[tokio::test]
async fn uninstall_leaves_no_trace() {
    let db = TestDatabase::empty().await;
    let database = migrated(options(&db)).await;

    let removed = soon(database.uninstall(Uninstall::Carefully)).await.unwrap();

    for made in ["function reveille.version()", "table reveille.function", "table reveille.migration"] {
        assert!(removed.dropped.contains(&made.to_owned()), "{removed:?}");
    }
    assert!(removed.left.is_empty(), "{removed:?}");
    let admin = db.client().await;
    let schemas: i64 =
        admin.query_one("select count(*) from pg_namespace where nspname = 'reveille'", &[]).await.unwrap().get(0);
    assert_eq!(schemas, 0);
    assert!(matches!(soon(database.uninstall(Uninstall::Carefully)).await, Err(DatabaseError::SchemaMissing { .. })));
    soon(database.migrate()).await.unwrap();
    database.close().await;
}

#[tokio::test]
async fn uninstall_refuses_when_others_live_in_the_schema_and_leaves_them_when_forced() {
    let db = TestDatabase::empty().await;
    let database = migrated(options(&db)).await;
    let admin = db.client().await;
    admin.batch_execute("create table reveille.mine (a int)").await.unwrap();

    let error = soon(database.uninstall(Uninstall::Carefully)).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "schema reveille is also used by table reveille.mine: move them away, or force the removal of ours"
    );
    let removed = soon(database.uninstall(Uninstall::Forced)).await.unwrap();

    assert_eq!(removed.left, ["table reveille.mine"]);
    admin.batch_execute("select * from reveille.mine").await.unwrap();
    database.close().await;
}

#[tokio::test]
async fn uninstall_refuses_when_others_depend_on_ours() {
    let db = TestDatabase::empty().await;
    let database = migrated(options(&db)).await;
    let admin = db.client().await;
    admin.batch_execute("create view outside as select version from reveille.migration").await.unwrap();

    let error = soon(database.uninstall(Uninstall::Carefully)).await.unwrap_err();

    assert!(with_causes(&error).contains("view public.outside"), "{}", with_causes(&error));
    database.check_schema().await.unwrap();
    soon(database.uninstall(Uninstall::Forced)).await.unwrap();
    database.close().await;
}
