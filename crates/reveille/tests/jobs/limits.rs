//! What is too far, too long, too large or no text: refused in words through every interface, or
//! made to fit.

use std::time::{Duration, SystemTime};

use reveille::database::DatabaseOptions;
use reveille::jobs::{Failure, Job, JobEvent, JobId, JobsError, JobsOptions, NewJob, Outcome, State, Unique};
use reveille_wake::{Event, Outcome as WakeOutcome};

use crate::support::{Fixture, NEVER, Node, job, soon, watched};

/// Every call is refused in these words, and nothing is left of any.
async fn refused(fixture: &Fixture, calls: &[(&str, &str)]) {
    let client = fixture.client().await;
    for (call, words) in calls {
        let error = client.query(&format!("select reveille.{call}"), &[]).await.expect_err(call);
        let message = error.as_db_error().expect("the database refuses").message();
        assert!(message.contains(words), "{call}: {message}");
    }
    assert_eq!(fixture.count("reveille.job_body").await, 0);
}

#[tokio::test]
async fn sql_refuses_times_that_never_come() {
    let fixture = Fixture::new().await;
    let late = "the time must be finite and before the year 2200";
    refused(
        &fixture,
        &[
            ("enqueue('k', '{}', run_at => 'infinity')", late),
            ("enqueue('k', '{}', run_at => '-infinity')", late),
            ("enqueue('k', '{}', run_at => '2200-01-01Z')", late),
            ("enqueue('k', '{}', run_at => '200000-01-01Z', unique_scope => 'kind')", late),
            ("enqueue_many('[{\"kind\": \"k\"}, {\"kind\": \"k\", \"run_at\": \"infinity\"}]')", late),
            ("enqueue('k', '{}', delay => '200 years')", "the delay must be at most 100 years"),
            ("enqueue_many('[{\"kind\": \"k\", \"delay_s\": \"Infinity\"}]')", "the delay must be at most 100 years"),
            ("enqueue_many('[{\"kind\": \"k\", \"delay_s\": \"NaN\"}]')", "the delay must be at most 100 years"),
            ("enqueue('k', '{}', timeout => '200 years')", "the timeout must be at most 100 years"),
            (
                "enqueue('k', '{}', unique_scope => 'kind', unique_window => '200 years')",
                "the unique window must be at most",
            ),
            ("snooze('1.1.1', '200 years')", "the delay must be at most 100 years"),
        ],
    )
    .await;
}

#[tokio::test]
async fn the_library_refuses_times_that_never_come_through_every_interface() {
    let fixture = Fixture::new().await;
    let mut client = fixture.client().await;
    let late = || job("k").run_at(SystemTime::UNIX_EPOCH + Duration::from_secs(1 << 60));

    let alone = soon(fixture.jobs.enqueue(late())).await.unwrap_err();
    let unique = soon(fixture.jobs.enqueue(late().unique(Unique::by_args()))).await.unwrap_err();
    let transaction = client.transaction().await.unwrap();
    let within = fixture.jobs.enqueue_in(&transaction, vec![late()]).await.unwrap_err();
    let copied = fixture.jobs.enqueue_copy_in(&transaction, vec![late()]).await.unwrap_err();

    for error in [alone, unique, within, copied] {
        assert_eq!(error.to_string(), "the time must be before the year 2200");
    }
}

#[tokio::test]
async fn a_time_that_has_passed_is_now_however_long_ago_it_was() {
    let fixture = Fixture::new().await;
    let _worker = fixture.worker().start().await.unwrap();
    let mut client = fixture.client().await;
    let past = || job("ok").run_at(SystemTime::UNIX_EPOCH - Duration::from_secs(1 << 60));

    let plain = fixture.enqueue(past()).await;
    let unique = fixture.enqueue(past().unique(Unique::by_key("x"))).await;
    let transaction = client.transaction().await.unwrap();
    let copied = fixture.jobs.enqueue_copy_in(&transaction, vec![past()]).await.unwrap();
    transaction.commit().await.unwrap();
    let sql = "select reveille.enqueue('ok', '{}', run_at => '0044-03-15 BC')";
    let sql = client.query_one(sql, &[]).await.unwrap().get::<_, i64>(0);

    for id in [plain, unique, copied[0].id, JobId(sql)] {
        fixture.completed(id).await;
    }
}

/// The tables take such rows, and before PostgreSQL 17 nothing can be subtracted from their times.
#[tokio::test]
async fn jobs_written_by_hand_for_the_ends_of_time_keep_no_other_job_waiting() {
    let fixture = Fixture::new().await;
    let never = fixture.enqueue(job("ok").delay(NEVER)).await;
    let always = fixture.enqueue(job("ok").queue("elsewhere")).await;
    fixture.sql(&format!("update reveille.job set due_at = 'infinity' where id = {never}")).await;
    fixture.sql(&format!("update reveille.job set due_at = '-infinity' where id = {always}")).await;
    let (events, watched) = watched();
    let node = Node::at(DatabaseOptions::new(fixture.db.url()).heartbeat(Duration::from_millis(100)), watched).await;
    let failed = |event: &Event| matches!(event, Event::RoundEnded { outcome: WakeOutcome::Failed, .. });

    let _worker = node.worker().queue("default", 1).queue("elsewhere", 1).start().await.unwrap();
    // It claims nothing, and so it reads the next due time.
    events.until(|event| matches!(event, Event::RoundEnded { .. })).await;
    let woken = node.enqueue(job("ok")).await;
    node.completed(woken).await;
    let surveyed = node.enqueue(job("ok").delay(NEVER)).await;
    fixture.sql(&format!("update reveille.job set due_at = now() where id = {surveyed}")).await;
    node.completed(surveyed).await;

    assert_eq!(events.count(failed), 0, "{:?}", events.all());
    assert_eq!(fixture.explain(never).await.state, State::Scheduled);
    assert_eq!(fixture.explain(always).await.state, State::Ready);
    assert_eq!(soon(fixture.jobs.queues()).await.unwrap().len(), 2);
}

/// Not only the first pause: the second failure must be recorded, too.
#[tokio::test]
async fn sql_refuses_a_backoff_with_any_invalid_pause() {
    let fixture = Fixture::new().await;
    let many = format!("list:0{}", ",1".repeat(100));
    for backoff in [
        "sometimes",
        "list:",
        "list:0,",
        "list:0,x",
        "list:0,Infinity",
        "list:0,NaN",
        "list:0,-1",
        "list:0,31622401",
        &many,
        "exponential:1",
        "exponential:1:x",
        "exponential:1:Infinity",
        "exponential:0:10",
        "exponential:2:1",
        "exponential:1:31622401",
        "exponential:1:2:3",
    ] {
        let call = format!("enqueue('k', '{{}}', backoff => '{backoff}')");
        refused(&fixture, &[(&call, "the backoff must be list:<seconds>,… or exponential:<first>:<longest>")]).await;
    }
    for backoff in ["list:0,30,300", "list: 1.5, 2", "list:31622400", "exponential:0.5:60", "exponential:1:1"] {
        fixture.sql(&format!("select reveille.enqueue('k', '{{}}', backoff => '{backoff}')")).await;
    }
}

#[tokio::test]
async fn sql_refuses_tags_and_sizes_as_the_library_does() {
    let fixture = Fixture::new().await;
    let tags = "a job has at most 32 tags of 1 to 128 bytes, without line breaks";
    refused(
        &fixture,
        &[
            ("enqueue('k', '{}', tags => array[E'a\\nb'])", tags),
            ("enqueue('k', '{}', tags => array['a', ''])", tags),
            ("enqueue('k', '{}', tags => array['a', null])", tags),
            ("enqueue('k', '{}', tags => array[repeat('é', 65)])", tags),
            ("enqueue('k', '{}', tags => array_fill('a'::text, array[33]))", tags),
            ("enqueue_many('[{\"kind\": \"k\", \"tags\": [\"a\\nb\"]}]')", tags),
            ("enqueue_many('[{\"kind\": \"k\", \"tags\": [\"\"]}]')", tags),
            ("enqueue('k', to_json(repeat('x', 16777215)))", "the arguments have more than 16 MiB"),
            ("enqueue('k', '{}', metadata => to_jsonb(repeat('x', 16777215)))", "the metadata have more than 16 MiB"),
        ],
    )
    .await;

    fixture.sql("select reveille.enqueue('k', '{}', tags => array_fill(repeat('é', 64), array[32]))").await;
    fixture.sql("select reveille.enqueue('k', '{}', tags => '{}')").await;
    fixture.sql("select reveille.enqueue_many('[{\"kind\": \"k\", \"tags\": [\"a\", \"b c\"]}]')").await;
    assert_eq!(fixture.count("reveille.job_body where cardinality(tags) = 32").await, 1);
    assert_eq!(fixture.count("reveille.job_body where tags = array['a', 'b c']").await, 1);
    assert_eq!(fixture.count("reveille.job_body where tags is null").await, 1);
}

/// No text of a handler keeps its end from being recorded: otherwise the job would run again.
#[tokio::test]
async fn the_words_of_a_handler_are_cut_and_hold_no_nul_however_it_says_them() {
    let fixture = Fixture::new().await;
    let url = fixture.db.url();
    let worker = fixture.worker().handler::<String, _>("end", move |how, job: Job| {
        let url = url.clone();
        async move {
            let long = format!("a\0{}", "é".repeat(4096));
            let mut failure = Failure::new("c", "m");
            (failure.code, failure.message) = (format!("b\0{}", "é".repeat(64)), long.clone());
            match &*how {
                "cancel" => Outcome::Cancel(long),
                "fail" => Outcome::Retry(failure),
                _ => {
                    let client = reveille_testkit::connect(&url).await;
                    job.settle_in(&client, Outcome::Cancel(long)).await.expect("is settled");
                    Outcome::Done
                }
            }
        }
    });
    let worker = worker.start().await.unwrap();
    let of = |how: &str| NewJob::new("end", &how).expect("is a job").max_attempts(1);

    let (cancelled, own) = (fixture.enqueue(of("cancel")).await, fixture.enqueue(of("own")).await);
    let failed = fixture.enqueue(of("fail")).await;
    fixture.failed(failed, 1).await;
    soon(worker.drain(Duration::from_secs(10))).await;

    // Of the 2047th é there is room for half of it.
    let reason = format!("a\u{fffd}{}", "é".repeat(2046));
    for id in [cancelled, own] {
        let ended = fixture.explain(id).await;
        assert_eq!((ended.state, ended.attempt, ended.because), (State::Cancelled, 1, reason.clone()));
    }
    let failed = fixture.explain(failed).await;
    let error = failed.errors.first().expect("is kept");
    assert_eq!((&*error.code, &*error.message), (&*format!("b\u{fffd}{}", "é".repeat(30)), &*reason));
}

/// Another attempt would have as large a result, and the work is done: this job is dead, and the
/// others are not.
#[tokio::test]
async fn a_result_that_is_too_large_ends_its_own_job_as_dead() {
    let fixture = Fixture::with(JobsOptions::default().args_bytes_max(100)).await;
    let refused = std::sync::Arc::new(std::sync::Mutex::new(String::new()));
    let (url, noted) = (fixture.db.url(), std::sync::Arc::clone(&refused));
    let worker = fixture.worker().handler::<usize, _>("large", move |bytes, job: Job| {
        let (url, noted) = (url.clone(), std::sync::Arc::clone(&noted));
        async move {
            let result = Outcome::done_with(&"x".repeat(bytes)).expect("is JSON");
            if bytes > 1000 {
                let client = reveille_testkit::connect(&url).await;
                let error = job.settle_in(&client, result).await.expect_err("is too large");
                assert!(matches!(error, JobsError::TooLarge { limit: 100, .. }), "{error:?}");
                *noted.lock().expect("is whole") = error.to_string();
                return Outcome::Done;
            }
            result
        }
    });
    let _worker = worker.start().await.unwrap();
    let of = |bytes: usize| NewJob::new("large", &bytes).expect("is a job");

    let dead = fixture.enqueue(of(99)).await;
    let last = fixture.failed(dead, 1).await;
    let done = fixture.enqueue(of(98)).await;
    fixture.completed(done).await;
    let refused_first = fixture.enqueue(of(2000)).await;
    fixture.completed(refused_first).await;

    assert!(
        matches!(&last, JobEvent::Failed { code, state: State::Dead, .. } if code == "result_too_large"),
        "{last:?}"
    );
    let (dead, done) = (fixture.explain(dead).await, fixture.explain(done).await);
    assert_eq!(dead.errors[0].message, "the results have 101 bytes, more than the 100 allowed");
    assert_eq!((dead.result, done.result.map(|result| result.len())), (None, Some(100)));
    assert_eq!(*refused.lock().unwrap(), "the results have 2002 bytes, more than the 100 allowed");
}

#[tokio::test]
async fn sql_refuses_results_that_are_too_large() {
    let fixture = Fixture::new().await;
    let id = fixture.enqueue(job("k")).await;
    let held =
        "update reveille.job set nonce = 7, worker = 'w', epoch = 1, attempt = 1, due_at = now() + interval '1 hour'";
    fixture.sql(held).await;

    let complete = format!("select reveille.complete('{id}.1.7', to_json(repeat('x', 16777215)))");
    let error = fixture.client().await.query(&complete, &[]).await.unwrap_err();

    assert_eq!(error.as_db_error().unwrap().message(), "the results have more than 16 MiB");
    assert_eq!(fixture.explain(id).await.state, State::Running);
}
