//! Enqueueing by COPY: as many as one likes, under the same rules as the other ways.

use std::time::{Duration, SystemTime};

use reveille::jobs::{Backoff, JobEvent, JobsError, JobsOptions, NewJob, State, Unique};

use crate::support::{Fixture, NEVER, all_new, job, soon};

/// Every field in use, and every field left alone.
fn described() -> Vec<NewJob> {
    let full = NewJob::raw("mail", "{ \"to\" : \"x\" }").unwrap().queue("a queue\nof 'odd' name").priority(2);
    let full = full.max_attempts(9).tags(["a", "b, \"c\""]).timeout(Duration::from_micros(1));
    let full = full.metadata(&serde_json::json!({"k": 1})).unwrap();
    let full = full.backoff(Backoff::list([Duration::from_secs(1)]).unwrap());
    let at = |seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
    vec![full, job("plain"), job("late").delay(NEVER), job("then").run_at(at(4_000_000_000)), job("past").run_at(at(1))]
}

#[tokio::test]
async fn copied_jobs_are_written_as_those_of_the_other_ways() {
    let fixture = Fixture::new().await;
    let mut client = fixture.client().await;
    let written = "select kind, body.queue, body.priority, body.max_attempts, timeout_ms, backoff, unique_key, tags, metadata, args,
            run_at = due_at, job.priority, job.queue, job.max_attempts, attempt, epoch, nonce,
            case when kind in ('then', 'past') then run_at
                 else date_trunc('hour', '2000-01-01'::timestamptz + (run_at - created_at) + interval '1 minute') end
        from reveille.job_body as body join reveille.job using (id) order by id";
    let mut written_by = Vec::new();
    for way in ["many", "copy"] {
        if way == "copy" {
            let transaction = client.transaction().await.unwrap();
            fixture.jobs.enqueue_copy_in(&transaction, described()).await.unwrap();
            transaction.commit().await.unwrap();
        } else {
            all_new(soon(fixture.jobs.enqueue_many(described())).await);
        }
        let rows = client.simple_query(&format!("select row(found.*)::text from ({written}) as found")).await.unwrap();
        let text = |row: &tokio_postgres::SimpleQueryMessage| match row {
            tokio_postgres::SimpleQueryMessage::Row(row) => row.get(0).map(ToOwned::to_owned),
            _ => None,
        };
        written_by.push(rows.iter().filter_map(text).collect::<Vec<String>>());
        client.batch_execute("truncate reveille.job, reveille.job_body").await.unwrap();
    }

    assert_eq!(written_by[0].len(), 5);
    assert_eq!(written_by[0], written_by[1]);
}

#[tokio::test]
async fn copied_jobs_exist_and_wake_with_the_commit_and_not_without_it() {
    let fixture = Fixture::new().await;
    let _worker = fixture.worker().start().await.unwrap();
    let before = fixture.enqueue(job("ok")).await;
    fixture.completed(before).await;
    let mut client = fixture.client().await;
    let thousand = || (0..1000).map(|_| job("ok")).collect::<Vec<NewJob>>();

    let lost = client.transaction().await.unwrap();
    fixture.jobs.enqueue_copy_in(&lost, thousand()).await.unwrap();
    lost.rollback().await.unwrap();
    assert_eq!((fixture.count("reveille.job").await, fixture.count("reveille.job_body").await), (0, 1));
    let kept = client.transaction().await.unwrap();
    let added = fixture.jobs.enqueue_copy_in(&kept, thousand()).await.unwrap();
    kept.commit().await.unwrap();

    let mut completed = fixture.events.reader();
    for _ in 0..1001 {
        completed.until(|event| matches!(event, JobEvent::Completed { .. })).await;
    }
    let ids: Vec<_> = added.iter().map(|added| added.id).collect();
    assert!(ids.is_sorted() && added.iter().all(|added| !added.existing));
    let mut done = fixture.completions();
    done.sort_unstable();
    assert_eq!(done[1..], ids);
}

#[tokio::test]
async fn unique_jobs_among_copied_ones_keep_their_rules_and_every_job_its_place() {
    let fixture = Fixture::new().await;
    let unique = |key: &str| job("k").delay(NEVER).unique(Unique::by_key(key));
    let first = fixture.enqueue(unique("taken")).await;
    let mut client = fixture.client().await;

    let transaction = client.transaction().await.unwrap();
    let jobs = vec![job("a"), unique("taken"), job("b"), unique("free"), unique("free"), job("c")];
    let added = fixture.jobs.enqueue_copy_in(&transaction, jobs).await.unwrap();
    transaction.commit().await.unwrap();

    let existing: Vec<bool> = added.iter().map(|added| added.existing).collect();
    assert_eq!(existing, [false, true, false, false, true, false]);
    assert_eq!((added[1].id, added[4].id), (first, added[3].id));
    for (place, kind) in [(0, "a"), (2, "b"), (3, "k"), (5, "c")] {
        assert_eq!(fixture.explain(added[place].id).await.kind, kind);
    }
    assert_eq!(fixture.count("reveille.job").await, 5);
}

#[tokio::test]
async fn what_is_no_job_refuses_the_copy_before_anything_is_sent() {
    let fixture = Fixture::with(JobsOptions::default().args_bytes_max(100)).await;
    let mut client = fixture.client().await;
    let transaction = client.transaction().await.unwrap();

    for (bad, words) in [
        (job(""), "the job's kind is empty"),
        (job("k").priority(10), "the priority must be 0 to 9, not 10"),
        (NewJob::new("k", &"x".repeat(99)).unwrap(), "the arguments have 101 bytes, more than the 100 allowed"),
    ] {
        let refused = fixture.jobs.enqueue_copy_in(&transaction, vec![job("ok"), bad]).await.unwrap_err();
        assert_eq!(refused.to_string(), words);
    }
    let wrong = vec![job("k").unique(Unique::scoped("colour"))];
    let nothing = fixture.jobs.enqueue_copy_in(&transaction, Vec::new()).await.unwrap();
    let added = fixture.jobs.enqueue_copy_in(&transaction, vec![job("ok")]).await.unwrap();
    transaction.commit().await.unwrap();

    assert_eq!((nothing.len(), fixture.count("reveille.job_body").await), (0, 1));
    assert_eq!(fixture.explain(added[0].id).await.state, State::Ready);
    let transaction = client.transaction().await.unwrap();
    let refused = fixture.jobs.enqueue_copy_in(&transaction, wrong).await.unwrap_err();
    assert!(matches!(&refused, JobsError::Refused(why) if why.contains("unique scope")), "{refused:?}");
}

#[tokio::test]
async fn copied_jobs_of_a_quiet_queue_are_not_announced() {
    let fixture = Fixture::new().await;
    let _worker = fixture.worker().queue("default", 1).queue("still", 1).start().await.unwrap();
    soon(fixture.jobs.quiet("still", true)).await.unwrap();
    let before = fixture.enqueue(job("ok").queue("still")).await;
    fixture.completed(before).await;
    let mut client = fixture.client().await;
    let notified = fixture.events.count(|event| *event == JobEvent::Notified);

    let transaction = client.transaction().await.unwrap();
    let quiet = vec![job("ok").queue("still").delay(NEVER)];
    fixture.jobs.enqueue_copy_in(&transaction, quiet).await.unwrap();
    transaction.commit().await.unwrap();
    // Notifications arrive in the order of the commits.
    let transaction = client.transaction().await.unwrap();
    let loud = fixture.jobs.enqueue_copy_in(&transaction, vec![job("ok")]).await.unwrap();
    transaction.commit().await.unwrap();
    fixture.completed(loud[0].id).await;

    assert_eq!(fixture.events.count(|event| *event == JobEvent::Notified), notified + 1);
}
