//! A queue in a plain table of your own, woken instead of polled:
//! `cargo run -p reveille-wake --example plain_table -- "host=/tmp user=postgres dbname=postgres"`
use std::future::{pending, poll_fn};
use std::time::{Duration, Instant};

use anyhow::Context;
use reveille_wake::{Cause, Hub, HubOptions, Link, Outcome, Waited};
use tokio_postgres::{AsyncMessage, NoTls};

const SETUP: &str = "create table if not exists letter (id bigint generated always as identity primary key, body text);
                     listen letter";
const PUSH: &str = "with pushed as (insert into letter (body) select 'letter ' || n from generate_series(1, $1::int) n)
                    select pg_notify('letter', '')";
const CLAIM: &str = "delete from letter where id in
                     (select id from letter order by id limit 2 for update skip locked) returning body";

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let url = std::env::args().nth(1).context("usage: plain_table <connection string>")?;
    let (db, mut connection) = tokio_postgres::connect(&url, NoTls).await?;
    let (hub, runner) = Hub::new(HubOptions::default());
    let mut tasks = tokio::task::JoinSet::new();
    tasks.spawn(runner.run(pending()));
    let listener = hub.clone();
    tasks.spawn(async move {
        // Never blocks: a listener that stops reading stops VACUUM for the whole database.
        while let Some(Ok(message)) = poll_fn(|context| connection.poll_message(context)).await {
            if let AsyncMessage::Notification(_) = message {
                listener.wake(&"letter", Cause::Notified);
            }
        }
        listener.set_link(Link::Lost { since: Instant::now(), attempts: 0 }); // a real one connects again
    });
    db.batch_execute(SETUP).await?;
    hub.set_link(Link::Proven { since: Instant::now() }); // wakes all: hints before LISTEN were missed

    let mut armed = hub.arm("letter")?; // from here no wake is lost
    let mut left = 5;
    while left > 0 {
        // A hint may get lost: after thirty seconds claim anyway.
        if let Waited::Woken(cause) = armed.wait(Instant::now() + Duration::from_secs(30)).await {
            println!("woken: {cause}");
        }
        let claim = armed.claim(); // an error below drops it, and its wake is put back
        let rows = db.query(CLAIM, &[]).await?;
        claim.found(Outcome::of(rows.len(), 2));
        if rows.is_empty() {
            db.query_one(PUSH, &[&left]).await?; // a push: here, in psql or on another machine
        }
        for row in rows {
            println!("took {}", row.get::<_, &str>(0));
            left -= 1;
        }
    }
    Ok(())
}
