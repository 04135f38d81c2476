//! What has been done is recorded after a failover: sessions of the demoted server refuse, new ones
//! find no primary yet.

use std::time::Duration;

use reveille::jobs::JobEvent;
use tokio_postgres::Client;

use crate::support::{Fixture, job, soon};

/// Completions are refused, and so is every new session.
async fn demote(fixture: &Fixture, admin: &Client) {
    let refuse = format!(
        "create function refuse() returns trigger language plpgsql as $$
         begin raise exception 'not now' using errcode = '25006'; end $$;
         create trigger refuse before insert on reveille.job_done for each row execute function refuse();
         alter database {} set default_transaction_read_only = on",
        fixture.db.name()
    );
    admin.batch_execute(&refuse).await.expect("is done");
}

async fn promote(fixture: &Fixture, admin: &Client) {
    let accept = format!(
        "drop trigger refuse on reveille.job_done; alter database {} reset default_transaction_read_only",
        fixture.db.name()
    );
    admin.batch_execute(&accept).await.expect("is done");
}

/// A worker that has done a job, and one whose completion is refused at this moment.
async fn refused_completion(fixture: &Fixture, admin: &Client) -> reveille::jobs::JobId {
    let first = fixture.enqueue(job("ok")).await;
    fixture.completed(first).await;
    demote(fixture, admin).await;
    let id = fixture.enqueue(job("ok")).await;
    let sessions = "select count(*) from pg_stat_activity
         where datname = current_database() and application_name like '% complete'";
    let given_up = async {
        while admin.query_one(sessions, &[]).await.expect("counts").get::<_, i64>(0) > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    soon(given_up).await;
    id
}

#[tokio::test]
async fn a_completion_that_meets_a_demoted_server_is_recorded_by_the_next_primary() {
    let fixture = Fixture::new().await;
    let _worker = fixture.worker().start().await.unwrap();
    let admin = fixture.client().await;
    let id = refused_completion(&fixture, &admin).await;

    promote(&fixture, &admin).await;
    soon(fixture.completed(id)).await;

    let started = |event: &JobEvent| matches!(event, JobEvent::Started { job } if job.id == id);
    assert_eq!(fixture.events.count(started), 1, "it was not done again");
}

/// Nothing was recorded, so a worker that finds the job claimed by another has not completed it.
#[tokio::test]
async fn a_completion_that_was_refused_is_not_taken_for_recorded() {
    let fixture = Fixture::new().await;
    let _worker = fixture.worker().start().await.unwrap();
    let admin = fixture.client().await;
    let id = refused_completion(&fixture, &admin).await;

    admin.execute("update reveille.job set epoch = epoch + 1", &[]).await.unwrap();
    promote(&fixture, &admin).await;

    fixture.events.until(|event| matches!(event, JobEvent::LeaseLost { job } if job.id == id)).await;
}
