//! Every verb in every state, through every door: what the table does not list is refused and changes nothing.

use reveille::jobs::{JobId, JobsError, Redrive, State, Verb};
use tokio_postgres::Client;

use crate::support::{Fixture, NEVER, job};

/// A job in that state, with a token that would hold it if it were running under it.
async fn in_state(fixture: &Fixture, client: &Client, state: State) -> (JobId, String) {
    let id = fixture.enqueue(if state == State::Scheduled { job("k").delay(NEVER) } else { job("k") }).await;
    let number = id.0;
    let claim = format!(
        "update reveille.job set nonce = 77, worker = 'w', epoch = 1, attempt = 1, due_at = now() + interval '1 hour' where id = {number}"
    );
    let end = format!(
        "delete from reveille.job where id = {number};
         insert into reveille.job_done (id, state, finished_at, epoch, attempt, queue) values ({number}, '{state}', now(), 1, 1, 'default')"
    );
    match state {
        State::Scheduled | State::Ready => {}
        State::Running => client.batch_execute(&claim).await.unwrap(),
        State::Done | State::Cancelled | State::Dead => client.batch_execute(&end).await.unwrap(),
    }
    (id, format!("{id}.1.77"))
}

/// Everything that is written about a job.
async fn books(client: &Client, id: JobId) -> String {
    let row = "select coalesce((select job::text from reveille.job where id = $1), '') || '|'
        || coalesce((select job_done::text from reveille.job_done where id = $1), '') || '|'
        || coalesce((select job_body::text from reveille.job_body where id = $1), '')";
    client.query_one(row, &[&id.0]).await.unwrap().get(0)
}

/// The doors through which the verb can be tried; whether each let it happen.
async fn attempts(fixture: &Fixture, client: &Client, verb: Verb, id: JobId, token: &str) -> Vec<bool> {
    let wrong = |error: &JobsError| matches!(error, JobsError::WrongState { .. } | JobsError::NoJob(_));
    let by_library = |done: Result<(), JobsError>| {
        if let Err(error) = &done {
            assert!(wrong(error), "{verb}: {error:?}");
        }
        done.is_ok()
    };
    let by_token = async |call: &str| client.query(&format!("select reveille.{call}"), &[&token]).await.is_ok();
    let settled = async |outcome: &str| {
        let settle =
            "select said from reveille.settle_jobs(array[$1::bigint], array[1], array[77::bigint], array[$2::text],
            array[0::float8], array['c'], array['m'], array[0::float8], array[null::bytea], 60, 60)";
        let row = client.query_one(settle, &[&id.0, &outcome]).await.unwrap();
        row.get::<_, &str>(0) == "recorded"
    };
    match verb {
        // Nothing is written by these: time does them.
        Verb::FallDue | Verb::Expire => Vec::new(),
        Verb::Claim => vec![claim(client, id).await],
        Verb::Complete => {
            let complete = reveille::database::statements()
                .find(|statement| statement.name == "jobs/settle/complete.sql")
                .unwrap();
            let prepared =
                client.prepare_typed(&complete.text(&"reveille".parse().unwrap()), complete.types).await.unwrap();
            let fused = client
                .query(&prepared, &[&vec![id.0], &vec![1_i32], &vec![78_i64], &vec![1.0_f64], &60.0_f64])
                .await
                .unwrap();
            assert!(fused.is_empty(), "another nonce holds nothing");
            vec![by_token("complete($1)").await, settled("done").await]
        }
        Verb::Fail => vec![by_token("fail($1, 'c', 'm')").await, settled("retry").await],
        Verb::Snooze => vec![by_token("snooze($1, '1 s')").await, settled("snooze").await],
        Verb::Release => vec![settled("release").await],
        Verb::Bury => vec![settled("dead").await],
        Verb::Cancel => vec![by_library(fixture.jobs.cancel(id).await.map(drop))],
        Verb::RetryNow => vec![by_library(fixture.jobs.retry_now(id).await)],
        Verb::Redrive => vec![!fixture.jobs.redrive(Redrive::one(id)).await.unwrap().is_empty()],
        Verb::Reprioritise => vec![by_library(fixture.jobs.reprioritise(id, 1).await)],
        Verb::Delete => vec![by_library(fixture.jobs.delete(id).await)],
    }
}

/// Whether a claim of everything takes it.
async fn claim(client: &Client, id: JobId) -> bool {
    let take = reveille::database::statements().find(|statement| statement.name == "jobs/claim/take.sql").unwrap();
    let prepared = client.prepare_typed(&take.text(&"reveille".parse().unwrap()), take.types).await.unwrap();
    let (times, ids) = (vec![std::time::SystemTime::UNIX_EPOCH; 10], vec![0_i64; 10]);
    let who: [&(dyn tokio_postgres::types::ToSql + Sync); 6] =
        [&100_i64, &"w2", &5_i64, &30.0_f64, &60.0_f64, &None::<f64>];
    let what: [&(dyn tokio_postgres::types::ToSql + Sync); 4] = [&vec!["default"], &vec![100], &times, &ids];
    let rows = client.query(&prepared, &[&what[..], &who[..]].concat()).await.unwrap();
    rows.iter().any(|row| row.get::<_, i64>("id") == id.0)
}

#[tokio::test]
async fn what_the_table_does_not_list_is_refused_and_changes_nothing() {
    let fixture = Fixture::new().await;
    let client = fixture.client().await;

    for verb in Verb::ALL {
        for state in State::ALL {
            let (id, token) = in_state(&fixture, &client, state).await;
            let before = books(&client, id).await;

            let done = attempts(&fixture, &client, verb, id, &token).await;

            if verb.is_legal(state) {
                assert!(done.is_empty() || done[0], "{verb} of a job that is {state} is legal");
            } else {
                assert!(done.iter().all(|done| !done), "{verb} of a job that is {state} must be refused");
                assert_eq!(books(&client, id).await, before, "{verb} of a job that is {state}");
            }
            client.batch_execute("truncate reveille.job, reveille.job_done, reveille.job_body").await.unwrap();
        }
    }
}

/// Column by column: rows that no statement writes are refused by the tables themselves.
#[tokio::test]
async fn the_tables_refuse_rows_that_are_in_no_state() {
    let fixture = Fixture::new().await;
    let client = fixture.client().await;
    fixture.enqueue(job("k")).await;
    for set in ["nonce = 1", "worker = 'w'", "cancel_requested = true", "priority = 10"] {
        let error = client.batch_execute(&format!("update reveille.job set {set}")).await.unwrap_err();
        assert_eq!(error.code().map(tokio_postgres::error::SqlState::code), Some("23514"), "{set}");
    }
}
