//! The doctor: facts and findings on a healthy database and on sick ones.

use std::time::Duration;

use reveille::database::{Database, Examination, ExamineOptions, Finding, Verdict, Warning};
use reveille_testkit::TestDatabase;

use crate::support::{migrated, options, sessions, soon, until};

fn finding<'e>(examination: &'e Examination, name: &str) -> &'e Finding {
    examination.findings.iter().find(|finding| finding.name == name).expect(name)
}

#[tokio::test]
async fn a_healthy_database_has_facts_and_no_failure() {
    let db = TestDatabase::empty().await;
    let database = migrated(options(&db)).await;

    let examination = soon(database.examine(&ExamineOptions::default())).await;

    let facts = &examination.facts;
    assert_eq!(facts.schema_version, Some(database.schema_status().await.unwrap().known));
    assert!(facts.listen_echo.unwrap() < Duration::from_secs(2));
    assert!(facts.clock_ahead_seconds.unwrap().abs() < 1.0);
    assert!(facts.notify_queue.unwrap() < 0.1);
    assert!(facts.connections.unwrap().used > 0);
    assert!(facts.xmin_holders.as_ref().unwrap().is_empty());
    for name in ["postgres", "schema", "listen", "clock", "xmin", "notify queue", "connections", "stranded"] {
        assert_eq!(finding(&examination, name).verdict, Verdict::Ok, "{:?}", finding(&examination, name));
    }
    // The tests' clusters run without fsync, which is a warning.
    assert_eq!(finding(&examination, "durability").verdict, Verdict::Warn);
    assert!(database.warnings().contains(&Warning::FsyncOff));
    assert_eq!(examination.verdict(), Verdict::Warn);
    database.close().await;
}

#[tokio::test]
async fn a_missing_schema_and_too_few_connections_are_failures_with_a_remedy() {
    let db = TestDatabase::empty().await;
    let database = soon(Database::connect(options(&db))).await.unwrap();

    let examination = soon(database.examine(&ExamineOptions::default().connections_needed(5000))).await;

    let schema = finding(&examination, "schema");
    assert_eq!((schema.verdict, schema.remedy.as_str()), (Verdict::Fail, "run `reveille migrate up`"));
    assert_eq!(finding(&examination, "connections").verdict, Verdict::Fail);
    assert!(!finding(&examination, "connections").remedy.is_empty());
    assert!(examination.findings.iter().all(|finding| finding.name != "stranded"), "there is nothing to check");
    database.close().await;
}

#[tokio::test]
async fn a_way_for_listen_that_leads_to_silence_is_found_within_seconds() {
    let db = TestDatabase::new().await;
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let nowhere = format!("postgres://me@{}/shop", silent.local_addr().unwrap());
    let database = soon(Database::connect(options(&db).listen_url(nowhere))).await.unwrap();

    let options = ExamineOptions::default();
    let examining = tokio::time::timeout(Duration::from_secs(8), database.examine(&options));
    let examination = examining.await.expect("each check has an end of its own");

    assert_eq!(finding(&examination, "listen").sentence, "no answer within 5s");
    assert_eq!(finding(&examination, "connections").verdict, Verdict::Ok);
    database.close().await;
}

#[tokio::test]
async fn the_holder_of_a_snapshot_is_named() {
    let db = TestDatabase::empty().await;
    let database = migrated(options(&db)).await;
    let holder = reveille_testkit::connect(&format!("{} application_name=dawdler", db.url())).await;
    holder.batch_execute("begin isolation level repeatable read; select 1").await.unwrap();

    let examination = soon(database.examine(&ExamineOptions::default().old_transaction(Duration::ZERO))).await;

    let xmin = finding(&examination, "xmin");
    assert_eq!(xmin.verdict, Verdict::Warn);
    let holders = examination.facts.xmin_holders.as_ref().unwrap();
    assert!(holders.iter().any(|holder| holder.kind == "session" && holder.who.contains("dawdler")), "{holders:?}");
    database.close().await;
}

#[tokio::test]
async fn messages_that_no_consumer_is_woken_for_are_a_failure() {
    let db = TestDatabase::empty().await;
    let database = migrated(options(&db)).await;
    let client = db.client().await;
    client
        .batch_execute(
            "select reveille.ensure('mail', array['a']);
             update reveille.partition_row set next_seq = 3;
             insert into reveille.consumer_group (queue, name, mode, settled) select id, 'g', 'all', true from reveille.queue;
             insert into reveille.cursor (partition, grp, committed)
             select partition.id, consumer_group.id, 0 from reveille.partition, reveille.consumer_group",
        )
        .await
        .unwrap();

    let examination = soon(database.examine(&ExamineOptions::default())).await;

    let stranded = finding(&examination, "stranded");
    assert_eq!((examination.facts.stranded, stranded.verdict), (Some(1), Verdict::Fail), "{stranded:?}");
    database.close().await;
}

/// A lock stands for tables that are too large to be read in time.
#[tokio::test]
async fn a_check_that_takes_too_long_is_a_warning_and_no_failure() {
    let db = TestDatabase::empty().await;
    let database = migrated(options(&db)).await;
    let mut holder = db.client().await;
    let held = holder.transaction().await.unwrap();
    held.batch_execute("lock table reveille.cursor in access exclusive mode").await.unwrap();

    let examination = soon(database.examine(&ExamineOptions::default())).await;

    assert_eq!(finding(&examination, "stranded").verdict, Verdict::Warn);
    let waiting =
        "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()";
    let watcher = db.client().await;
    until("the server has stopped reading", async || {
        watcher.query_one(waiting, &[]).await.unwrap().get::<_, i64>(0) == 0
    })
    .await;
    held.rollback().await.unwrap();
    database.close().await;
}

#[tokio::test]
async fn an_examination_leaves_no_session_behind() {
    let db = TestDatabase::empty().await;
    let database = migrated(options(&db)).await;

    soon(database.examine(&ExamineOptions::default())).await;
    database.close().await;

    until("every session is gone", async || sessions(&db).await == 0).await;
}
