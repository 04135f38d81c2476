//! Enqueueing: by the library, by SQL, in transactions, and what is refused.

use std::time::Duration;

use reveille::database::{DatabaseError, DatabaseOptions};
use reveille::jobs::{Backoff, JobEvent, JobsError, JobsOptions, NewJob, State, Unique};
use reveille_testkit::needs;
use reveille_wake::Event;

use crate::support::{Fixture, NEVER, Node, job, soon};

#[tokio::test]
async fn a_job_is_kept_as_its_producer_described_it() {
    let fixture = Fixture::new().await;
    let described = NewJob::raw("mail", "{ \"to\" : \"x\" }").unwrap();
    let described = described.queue("letters").priority(2).max_attempts(9).tags(["a", "b"]).delay(NEVER);
    let described = described.metadata(&serde_json::json!({"k": 1})).unwrap();

    let id = fixture.enqueue(described.timeout(Duration::from_secs(7))).await;

    let kept = fixture.explain(id).await;
    assert_eq!((&*kept.kind, &*kept.queue, kept.priority, kept.max_attempts), ("mail", "letters", 2, 9));
    assert_eq!((kept.state, kept.attempt), (State::Scheduled, 0));
    assert_eq!((&*kept.args, kept.metadata.as_deref()), (&b"{ \"to\" : \"x\" }"[..], Some(&b"{\"k\":1}"[..])));
    assert_eq!(kept.tags, ["a", "b"]);
    assert_eq!(fixture.count("reveille.job_body where timeout_ms = 7000").await, 1);
}

#[tokio::test]
async fn jobs_of_one_call_are_answered_in_order_and_a_bad_one_fails_alone() {
    let fixture = Fixture::new().await;
    let jobs = vec![job("a"), job(""), job("b").unique(Unique::scoped("colour")), job("c")];

    let added = soon(fixture.jobs.enqueue_many(jobs)).await;

    assert!(added[0].as_ref().unwrap().id < added[3].as_ref().unwrap().id);
    assert_eq!(added[1].as_ref().unwrap_err().to_string(), "the job's kind is empty");
    let refused = added[2].as_ref().unwrap_err();
    assert!(matches!(refused, JobsError::Refused(why) if why.contains("unique scope")), "{refused:?}");
    assert_eq!(fixture.count("reveille.job").await, 2);
}

#[tokio::test]
async fn a_transaction_that_is_rolled_back_leaves_no_job_and_wakes_no_worker() {
    let fixture = Fixture::new().await;
    let events = reveille_testkit::Events::new();
    let recorded = events.clone();
    let observer = std::sync::Arc::new(move |event: &Event| recorded.record(*event));
    let options = JobsOptions::default().wake_observer(observer);
    let node = Node::at(DatabaseOptions::new(fixture.db.url()).heartbeat(NEVER), options).await;
    let _worker = node.worker().start().await.unwrap();
    events.until(|event| matches!(event, Event::Link(link) if link.is_proven())).await;
    let before = node.enqueue(job("ok")).await;
    node.completed(before).await;
    let mut client = fixture.client().await;

    let transaction = client.transaction().await.unwrap();
    fixture.jobs.enqueue_in(&transaction, vec![job("ok")]).await.unwrap();
    transaction.rollback().await.unwrap();
    // Notifications arrive in the order of the commits: one of the first transaction would have
    // arrived before that of the second.
    let notified = node.events.count(|event| *event == JobEvent::Notified);
    let transaction = client.transaction().await.unwrap();
    let kept = fixture.jobs.enqueue_in(&transaction, vec![job("ok")]).await.unwrap();
    transaction.commit().await.unwrap();
    node.completed(kept[0].id).await;

    assert_eq!(node.events.count(|event| *event == JobEvent::Notified), notified + 1);
    assert_eq!(fixture.count("reveille.job_body").await, 2);
}

#[cfg(feature = "sqlx")]
#[tokio::test]
async fn jobs_are_enqueued_in_a_transaction_of_sqlx() {
    let fixture = Fixture::new().await;
    let _worker = fixture.worker().start().await.unwrap();
    let url = fixture.db.url();
    let part = |name: &str| {
        let pair = url.split(' ').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='));
        pair.map(|value| value.trim_matches('\'').to_owned()).expect("is said")
    };
    let options = sqlx::postgres::PgConnectOptions::new().socket(part("host")).port(part("port").parse().unwrap());
    let options = options.username(&part("user")).database(fixture.db.name());
    let pool = sqlx::PgPool::connect_with(options).await.unwrap();

    let mut lost = pool.begin().await.unwrap();
    fixture.jobs.enqueue_in_sqlx(&mut *lost, vec![job("ok")]).await.unwrap();
    lost.rollback().await.unwrap();
    let mut kept = pool.begin().await.unwrap();
    let later = job("ok").run_at(std::time::SystemTime::UNIX_EPOCH + Duration::from_secs(4_000_000_000));
    let added = fixture.jobs.enqueue_in_sqlx(&mut *kept, vec![job("ok"), later]).await.unwrap();
    kept.commit().await.unwrap();

    fixture.completed(added[0].id).await;
    assert_eq!(fixture.explain(added[1].id).await.state, State::Scheduled);
    assert_eq!(fixture.count("reveille.job_body").await, 2);
}

#[tokio::test]
async fn plain_sql_enqueues_and_wakes() {
    let fixture = Fixture::new().await;
    let _worker = fixture.worker().queue("default", 1).queue("mail", 1).start().await.unwrap();
    let client = fixture.client().await;

    let text = client.query_one("select reveille.enqueue('ok', '{\"a\":1}')", &[]).await.unwrap().get::<_, i64>(0);
    let named = "select reveille.enqueue('ok', '{}'::jsonb, queue => 'mail', priority => 0, tags => array['x'])";
    let named = client.query_one(named, &[]).await.unwrap().get::<_, i64>(0);
    let many = "select reveille.enqueue_many('[{\"kind\": \"ok\"}, {\"kind\": \"ok\", \"queue\": \"mail\", \"delay_s\": 0.05}]')";
    let many: Vec<i64> = client.query(many, &[]).await.unwrap().iter().map(|row| row.get(0)).collect();

    for id in [text, named].into_iter().chain(many) {
        fixture.completed(reveille::jobs::JobId(id)).await;
    }
}

#[tokio::test]
async fn sql_refuses_in_words_what_is_no_job() {
    let fixture = Fixture::new().await;
    let client = fixture.client().await;
    for (call, words) in [
        ("enqueue('', '{}')", "the job's kind is empty"),
        ("enqueue('k', '{}', queue => '')", "the queue's name is empty"),
        ("enqueue('k', '{}', delay => '-1 s')", "the delay must not be negative"),
        ("enqueue('k', '{}', priority => 10)", "the priority must be 0 to 9"),
        ("enqueue('k', '{}', max_attempts => 0)", "the number of attempts must be 1 to 1000"),
        ("enqueue('k', '{}', unique_scope => 'colour')", "the unique scope must name some of kind, queue and args"),
        ("enqueue('k', '{}', unique_key => 'x')", "a unique key needs a unique scope"),
        ("enqueue('k', '{}', unique_scope => 'kind', on_conflict => 'shrug')", "a conflict is answered by"),
        ("enqueue('k', '{}', backoff => 'sometimes')", "the backoff must be"),
        ("enqueue('k', '{}', timeout => '0 s')", "the timeout must be more than 0 s"),
        ("enqueue('k', 'no json')", "invalid input syntax for type json"),
        ("enqueue_many('[{\"kind\": \"k\", \"colour\": 1}]')", "a job has no field \"colour\""),
        ("enqueue_many('[{\"args\": 1}]')", "the job's kind is empty"),
    ] {
        let error = client.query(&format!("select reveille.{call}"), &[]).await.unwrap_err();
        let said = error.as_db_error().unwrap().message();
        assert!(said.contains(words), "{call}: {said}");
    }
    assert_eq!(fixture.count("reveille.job_body").await, 0);
}

#[tokio::test]
async fn oversized_arguments_are_refused_and_the_others_are_not() {
    let fixture = Fixture::with(JobsOptions::default().args_bytes_max(100)).await;

    let added = soon(fixture.jobs.enqueue_many(vec![NewJob::new("k", &"x".repeat(200)).unwrap(), job("k")])).await;

    assert!(matches!(added[0], Err(JobsError::TooLarge { bytes: 202, limit: 100, .. })), "{:?}", added[0]);
    assert!(added[1].is_ok());
}

/// By a program without Reveille.
#[tokio::test]
async fn psql_enqueues_in_its_transaction() {
    let fixture = Fixture::new().await;
    let has = std::process::Command::new("psql").arg("--version").output().is_ok_and(|done| done.status.success());
    if !needs(has, "psql") {
        return;
    }
    let script = "begin; select reveille.enqueue('lost', '{}', queue => 'mail'); rollback;
                  begin; select reveille.enqueue('kept', '{\"a\": 1}', queue => 'mail'); commit;";
    let url = fixture.db.url();
    let run = tokio::task::spawn_blocking(move || {
        std::process::Command::new("psql").args(["-X", "-v", "ON_ERROR_STOP=1", "-c", script, "-d", &url]).output()
    });

    let done = soon(run).await.unwrap().unwrap();

    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    assert_eq!(fixture.count("reveille.job_body where kind = 'kept' and queue = 'mail'").await, 1);
    assert_eq!(fixture.count("reveille.job_body").await, 1);
}

#[tokio::test]
async fn an_enqueue_after_the_end_is_refused() {
    let fixture = Fixture::new().await;
    soon(fixture.jobs.close()).await;

    let refused = soon(fixture.jobs.enqueue(job("k"))).await.unwrap_err();

    assert!(matches!(refused, JobsError::Closed | JobsError::Database(DatabaseError::Closed)), "{refused:?}");
}

/// The default pauses, those of a list, and those of an exponential backoff with its jitter.
#[tokio::test]
async fn the_pauses_between_attempts_are_as_they_were_chosen() {
    let fixture = Fixture::new().await;
    let client = fixture.client().await;
    let delay = async |backoff: Option<String>, failures: i32| -> f64 {
        let row = client.query_one("select reveille.retry_delay($1, $2)", &[&backoff, &failures]).await.unwrap();
        row.get(0)
    };

    let mut usual = Vec::new();
    for failures in 1..=5 {
        usual.push(delay(None, failures).await);
    }
    assert_eq!(usual, [0.0, 30.0, 300.0, 300.0, 300.0]);
    let list = Backoff::list([Duration::from_secs(1), Duration::from_millis(2500)]).unwrap().to_string();
    assert_eq!((delay(Some(list.clone()), 1).await, delay(Some(list), 9).await), (1.0, 2.5));
    let doubling = Backoff::exponential(Duration::from_secs(1), Duration::from_secs(60)).unwrap().to_string();
    for (failures, longest) in [(1, 1.0), (2, 2.0), (5, 16.0), (7, 60.0), (1000, 60.0)] {
        let mut seen = Vec::new();
        for _ in 0..20 {
            seen.push(delay(Some(doubling.clone()), failures).await);
        }
        assert!(seen.iter().all(|delay| (0.0..=longest).contains(delay)), "{failures}: {seen:?}");
        assert!(seen.windows(2).any(|two| (two[0] - two[1]).abs() > 1e-9), "no jitter: {seen:?}");
    }
}

/// Otherwise one of the two would be dropped silently.
#[tokio::test]
async fn a_time_and_a_delay_together_are_refused_everywhere() {
    let fixture = Fixture::new().await;
    let client = fixture.client().await;
    let words = "a job has a run_at or a delay, not both";

    for call in [
        "enqueue('k', '{}', run_at => now() + interval '1 hour', delay => '1 s')",
        "enqueue('k', '{}'::json, run_at => now(), delay => '0 s')",
        "enqueue_many('[{\"kind\": \"k\"}, {\"kind\": \"k\", \"run_at\": \"2030-01-01\", \"delay_s\": 1}]')",
    ] {
        let refused = client.batch_execute(&format!("select reveille.{call}")).await.unwrap_err();
        assert_eq!(refused.as_db_error().map(tokio_postgres::error::DbError::message), Some(words), "{call}");
    }
    let both = job("k").run_at(std::time::SystemTime::UNIX_EPOCH).delay(Duration::from_secs(1));
    let refused = soon(fixture.jobs.enqueue(both)).await.unwrap_err();

    assert_eq!(refused.to_string(), words);
    assert_eq!(fixture.count("reveille.job_body").await, 0);
}

#[tokio::test]
async fn a_job_with_a_field_that_is_misspelt_is_refused_with_its_name() {
    let fixture = Fixture::new().await;

    let call = "select reveille.enqueue_many('[{\"kind\": \"k\", \"delay\": 5}]')";
    let refused = fixture.client().await.batch_execute(call).await.unwrap_err();

    assert_eq!(
        refused.as_db_error().map(tokio_postgres::error::DbError::message),
        Some("a job has no field \"delay\"")
    );
}
