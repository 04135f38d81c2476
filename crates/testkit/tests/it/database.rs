//! A database per test.

use reveille_testkit::{Shutdown, TestCluster, TestDatabase, connect};

#[tokio::test]
async fn two_tests_do_not_see_each_other() {
    let (mine, yours) = (TestDatabase::new().await, TestDatabase::new().await);
    let client = mine.client().await;

    client.batch_execute("create table only_mine ()").await.unwrap();

    let theirs = yours.client().await.query("select from pg_tables where tablename = 'only_mine'", &[]).await.unwrap();
    assert!(theirs.is_empty());
    assert_ne!(mine.name(), yours.name());
}

#[tokio::test]
async fn a_new_database_has_the_schema_and_an_empty_one_has_not() {
    let schemas = "select from pg_namespace where nspname = 'reveille'";
    let (migrated, empty) = (TestDatabase::new().await, TestDatabase::empty().await);

    assert_eq!(migrated.client().await.query(schemas, &[]).await.unwrap().len(), 1);
    assert_eq!(empty.client().await.query(schemas, &[]).await.unwrap().len(), 0);
}

#[tokio::test]
async fn a_database_goes_with_its_test() {
    let watcher = TestDatabase::empty().await;
    let database = TestDatabase::empty().await;
    let name = database.name().to_owned();
    // A session that is still open must not keep it.
    let _open = database.client().await;

    drop(database);

    let found = watcher.client().await.query("select from pg_database where datname = $1", &[&name]).await.unwrap();
    assert!(found.is_empty());
}

#[tokio::test]
async fn what_a_dead_run_left_is_swept_by_the_next() {
    let database = TestDatabase::empty().await;
    let client = database.client().await;
    // No process has this id: it is above every system's limit.
    client.batch_execute("create database test_2147483647_0badcafe template template0").await.unwrap();

    let swept = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "database::two_tests_do_not_see_each_other"])
        .output()
        .unwrap();

    assert!(swept.status.success(), "{}", String::from_utf8_lossy(&swept.stdout));
    let left = "select from pg_database where datname = 'test_2147483647_0badcafe'";
    assert!(client.query(left, &[]).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_cluster_of_its_own_comes_back_after_a_restart_and_a_crash() {
    let durable = reveille_embedded::Durability::Durable;
    let cluster = TestCluster::start(|options| options.durability(durable));
    let url = cluster.url("postgres");
    let rows = async |sql: &str| {
        let client = connect(&url).await;
        client.simple_query(sql).await.unwrap();
        let count: i64 = client.query_one("select count(*) from kept", &[]).await.unwrap().get(0);
        count
    };
    rows("create table kept as select 1").await;

    cluster.restart(Shutdown::Fast);
    let after_restart = rows("insert into kept values (2)").await;
    cluster.restart(Shutdown::Kill);
    let after_crash = rows("select").await;

    assert_eq!((after_restart, after_crash), (2, 2));
}
