//! The faults, each seen from a real client of a real server.

use std::time::{Duration, Instant};

use reveille_testkit::{Direction, TestDatabase, connect};
use tokio::time::timeout;
use tokio_postgres::NoTls;

/// Long enough for anything that is to come on this machine.
const SOON: Duration = Duration::from_secs(20);
/// Long enough to be sure that nothing comes.
const A_WHILE: Duration = Duration::from_millis(200);

#[tokio::test]
async fn a_fair_proxy_forwards_large_answers_unchanged() {
    let database = TestDatabase::empty().await;
    let (_proxy, url) = database.proxied().await;
    let client = connect(&url).await;

    let text: String = client.query_one("select repeat('reveille', 100000)", &[]).await.unwrap().get(0);

    assert_eq!(text, "reveille".repeat(100_000));
}

#[tokio::test]
async fn a_cut_ends_what_there_is_and_serves_what_comes() {
    let database = TestDatabase::empty().await;
    let (proxy, url) = database.proxied().await;
    let before = connect(&url).await;

    proxy.cut();

    assert!(before.simple_query("select 1").await.is_err());
    assert!(connect(&url).await.simple_query("select 1").await.is_ok());
    proxy.until_open(1).await;
}

#[tokio::test]
async fn a_delay_holds_each_answer_back() {
    let database = TestDatabase::empty().await;
    let (proxy, url) = database.proxied().await;
    let client = connect(&url).await;
    proxy.delay(Duration::from_millis(50));

    let began = Instant::now();
    client.simple_query("select 1").await.unwrap();

    assert!(began.elapsed() >= Duration::from_millis(100), "there and back is twice 50 ms");
}

#[tokio::test]
async fn a_stall_forgets_nothing() {
    let database = TestDatabase::empty().await;
    let (proxy, url) = database.proxied().await;
    let client = connect(&url).await;
    proxy.stall();
    let mut answer = Box::pin(client.simple_query("select 1"));
    assert!(timeout(A_WHILE, &mut answer).await.is_err());

    proxy.heal();

    assert!(timeout(SOON, answer).await.unwrap().is_ok());
}

#[tokio::test]
async fn a_half_open_line_never_answers_and_never_ends() {
    let database = TestDatabase::empty().await;
    let (proxy, url) = database.proxied().await;
    let client = connect(&url).await;
    proxy.half_open();
    let mut answer = Box::pin(client.simple_query("select 1"));
    assert!(timeout(A_WHILE, &mut answer).await.is_err());

    proxy.heal();

    assert!(timeout(A_WHILE, answer).await.is_err(), "what was swallowed is gone");
}

#[tokio::test]
async fn a_refusing_proxy_turns_newcomers_away_until_it_heals() {
    let database = TestDatabase::empty().await;
    let (proxy, url) = database.proxied().await;

    proxy.refuse();
    assert!(tokio_postgres::connect(&url, NoTls).await.is_err());
    proxy.heal();

    assert!(tokio_postgres::connect(&url, NoTls).await.is_ok());
}

#[tokio::test]
async fn a_cut_after_some_bytes_comes_in_the_middle_of_an_answer() {
    let database = TestDatabase::empty().await;
    let (proxy, url) = database.proxied().await;
    let client = connect(&url).await;

    proxy.cut_after(Direction::ToClient, 1000);

    assert!(client.simple_query("select repeat('x', 100000)").await.is_err());
}

#[tokio::test]
async fn a_cut_after_commit_leaves_a_commit_the_client_does_not_know_of() {
    let database = TestDatabase::empty().await;
    let (proxy, url) = database.proxied().await;
    let client = connect(&url).await;
    client.batch_execute("create table kept ()").await.unwrap();
    client.batch_execute("begin; insert into kept default values").await.unwrap();

    proxy.cut_after_sending("commit");
    let answer = client.batch_execute("commit").await;

    assert!(answer.is_err());
    let witness = database.client().await;
    // The server may still be working on it; the lock waits for its end.
    witness.batch_execute("begin; lock table kept in access exclusive mode; commit").await.unwrap();
    let rows: i64 = witness.query_one("select count(*) from kept", &[]).await.unwrap().get(0);
    assert_eq!(rows, 1);
}
