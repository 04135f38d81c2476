//! Every verb in every state, through every interface: what the table lists leads where it says,
//! and what it does not list is refused and changes nothing.

use std::collections::HashSet;

use reveille::jobs::{JobId, JobsError, Redrive, State, TRANSITIONS, Verb};
use tokio_postgres::Client;
use tokio_postgres::types::ToSql;

use crate::support::{Fixture, NEVER, job};

/// What else is true of a job, on which some ways of the table depend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Circumstance {
    Plain,
    /// It has no attempt left after this one.
    Spent,
    /// It is to be cancelled since it ran.
    Unwanted,
    /// Its worker was lost, and its lease has ended.
    Lost,
}

impl Circumstance {
    /// Those that a job in that state can have: it runs, or its worker was lost.
    fn of(verb: Verb, state: State) -> &'static [Self] {
        match (verb, state) {
            (Verb::Claim, State::Ready) => &[Self::Plain, Self::Spent, Self::Unwanted, Self::Lost],
            (_, State::Running) => &[Self::Plain, Self::Spent, Self::Unwanted],
            // Its holder may still settle it until it is claimed: that is no transition of a ready
            // job.
            (Verb::Cancel | Verb::RetryNow | Verb::Redrive | Verb::Reprioritise | Verb::Delete, State::Ready) => {
                &[Self::Plain, Self::Lost]
            }
            _ => &[Self::Plain],
        }
    }
}

/// What would hold a job that runs.
fn token(id: JobId) -> String {
    format!("{id}.1.77")
}

/// A job in that state, held by its token if it runs.
async fn in_state(fixture: &Fixture, client: &Client, state: State, with: Circumstance) -> JobId {
    let id = fixture.enqueue(if state == State::Scheduled { job("k").delay(NEVER) } else { job("k") }).await;
    let claim = |lease: &str| {
        let (attempt, unwanted) = (if with == Circumstance::Spent { 4 } else { 1 }, with == Circumstance::Unwanted);
        format!(
            "update reveille.job set nonce = 77, worker = 'w', epoch = 1, attempt = {attempt}, cancel_requested = {unwanted},
             due_at = now() + interval '{lease}' where id = {id}"
        )
    };
    let end = format!(
        "delete from reveille.job where id = {id};
         insert into reveille.job_done (id, state, finished_at, epoch, attempt, queue) values ({id}, '{state}', now(), 1, 1, 'default')"
    );
    let change = match state {
        State::Scheduled => String::new(),
        State::Ready if with == Circumstance::Plain => String::new(),
        State::Ready => claim("-1 hour"),
        State::Running => claim("1 hour"),
        State::Done | State::Cancelled | State::Dead => end,
    };
    client.batch_execute(&change).await.unwrap();
    id
}

/// Everything that is written about a job.
async fn rows_of(client: &Client, id: JobId) -> String {
    let row = "select coalesce((select job::text from reveille.job where id = $1), '') || '|'
        || coalesce((select job_done::text from reveille.job_done where id = $1), '') || '|'
        || coalesce((select job_body::text from reveille.job_body where id = $1), '')";
    client.query_one(row, &[&id.0]).await.unwrap().get(0)
}

/// Tries the verb through one of its interfaces; whether that let it happen, or nothing when it has
/// no more interfaces.
async fn attempt(fixture: &Fixture, client: &Client, (verb, interface): (Verb, usize), id: JobId) -> Option<bool> {
    let wrong = |error: &JobsError| matches!(error, JobsError::WrongState { .. } | JobsError::NoJob(_));
    let by_library = |done: Result<(), JobsError>| {
        if let Err(error) = &done {
            assert!(wrong(error), "{verb}: {error:?}");
        }
        done.is_ok()
    };
    let by_token = async |call: &str| client.query(&format!("select reveille.{call}"), &[&token(id)]).await.is_ok();
    let settled = async |outcome: &str, delay: Option<f64>| {
        let settle =
            "select said from reveille.settle_jobs(array[$1::bigint], array[1], array[77::bigint], array[$2::text],
            array[$3::float8], array['c'], array['m'], array[0::float8], array[null::bytea], 60, 60)";
        let row = client.query_one(settle, &[&id.0, &outcome, &delay]).await.unwrap();
        row.get::<_, &str>(0) == "recorded"
    };
    let later = Some(NEVER.as_secs_f64());
    Some(match (verb, interface) {
        (Verb::Claim, 0) => claim(client, id).await,
        (Verb::Complete, 0) => by_token("complete($1)").await,
        (Verb::Complete, 1) => settled("done", None).await,
        (Verb::Complete, 2) => complete(client, id).await,
        (Verb::Fail, 0) => by_token("fail($1, 'c', 'm', '1 hour')").await,
        (Verb::Fail, 1) => settled("retry", later).await,
        (Verb::Snooze, 0) => by_token("snooze($1, '1 hour')").await,
        (Verb::Snooze, 1) => settled("snooze", later).await,
        (Verb::Release, 0) => settled("release", None).await,
        (Verb::Bury, 0) => settled("dead", None).await,
        (Verb::Cancel, 0) => by_library(fixture.jobs.cancel(id).await.map(drop)),
        // By its holder.
        (Verb::Cancel, 1) => settled("cancelled", None).await,
        (Verb::RetryNow, 0) => by_library(fixture.jobs.retry_now(id).await),
        (Verb::Redrive, 0) => !fixture.jobs.redrive(Redrive::one(id)).await.unwrap().is_empty(),
        (Verb::Reprioritise, 0) => by_library(fixture.jobs.reprioritise(id, 1).await),
        (Verb::Delete, 0) => by_library(fixture.jobs.delete(id).await),
        // No more interfaces; and none for what time does.
        _ => return None,
    })
}

/// The rows of a statement of the library.
async fn rows(client: &Client, name: &str, params: &[&(dyn ToSql + Sync)]) -> Vec<tokio_postgres::Row> {
    let statement = reveille::database::statements().find(|statement| statement.name == name).unwrap();
    let text = statement.text(&"reveille".parse().unwrap());
    let prepared = client.prepare_typed(&text, statement.types).await.unwrap();
    client.query(&prepared, params).await.unwrap()
}

/// Whether the completion of many lets it happen.
async fn complete(client: &Client, id: JobId) -> bool {
    let complete = async |nonce: i64| {
        let name = "jobs/settle/complete.sql";
        rows(client, name, &[&vec![id.0], &vec![1_i32], &vec![nonce], &vec![1.0_f64], &60.0_f64]).await.len()
    };
    assert_eq!(complete(78).await, 0, "another nonce holds nothing");
    complete(77).await == 1
}

/// Whether a claim of everything takes it, or ends it.
async fn claim(client: &Client, id: JobId) -> bool {
    let (times, ids) = (vec![std::time::SystemTime::UNIX_EPOCH; 10], vec![0_i64; 10]);
    let who: [&(dyn ToSql + Sync); 6] = [&100_i64, &"w2", &5_i64, &30.0_f64, &60.0_f64, &None::<f64>];
    let what: [&(dyn ToSql + Sync); 4] = [&vec!["default"], &vec![100], &times, &ids];
    let rows = rows(client, "jobs/claim/take.sql", &[&what[..], &who[..]].concat()).await;
    rows.iter().any(|row| row.get::<_, i64>("id") == id.0)
}

#[tokio::test]
async fn what_the_table_lists_leads_where_it_says_and_what_it_does_not_list_changes_nothing() {
    let fixture = Fixture::new().await;
    let client = fixture.client().await;
    let mut seen = HashSet::new();

    for (verb, state) in Verb::ALL.into_iter().flat_map(|verb| State::ALL.map(|state| (verb, state))) {
        let circumstances = Circumstance::of(verb, state).iter();
        for (with, interface) in circumstances.flat_map(|with| (0..3).map(move |interface| (*with, interface))) {
            let tried = format!("{verb} of a job that is {state} ({with:?}), interface {interface}");
            let id = in_state(&fixture, &client, state, with).await;
            let before = rows_of(&client, id).await;

            let done = attempt(&fixture, &client, (verb, interface), id).await;

            let after = fixture.jobs.explain(id).await.unwrap().map(|job| job.state);
            if done.is_some_and(|done| done) {
                let step = TRANSITIONS.iter().find(|step| (step.verb, step.from, step.to) == (verb, state, after));
                assert!(step.is_some(), "{tried} led to {after:?}");
                seen.insert((verb, state, after));
            } else {
                let only_of_its_holder = (verb, interface) == (Verb::Cancel, 1) && state != State::Running;
                assert!(done.is_none() || !verb.is_legal(state) || only_of_its_holder, "{tried} is legal");
                assert_eq!(rows_of(&client, id).await, before, "{tried}");
            }
            client.batch_execute("truncate reveille.job, reveille.job_done, reveille.job_body").await.unwrap();
        }
    }

    // What time does is not written, and so not tried.
    let tried = TRANSITIONS.iter().filter(|step| !matches!(step.verb, Verb::FallDue | Verb::Expire));
    for step in tried {
        assert!(seen.contains(&(step.verb, step.from, step.to)), "{} from {}: {:?}", step.verb, step.from, step.to);
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
