//! Can the checks fail? The rules are broken on purpose, one at a time, and somebody must notice.

use std::time::Duration;

use crate::chaos;
use crate::histories;
use crate::world::World;

/// Long enough for a rule that is broken to show.
const TIME: Duration = Duration::from_secs(4);

/// A world in which one function has another text.
async fn world_with(function: &str, rule: &str, broken: &str) -> World {
    let world = World::new().await;
    break_rule(&world, function, rule, broken).await;
    world
}

async fn break_rule(world: &World, function: &str, rule: &str, broken: &str) {
    let client = world.db.client().await;
    let read = "select pg_get_functiondef(pg_proc.oid) from pg_proc
                join pg_namespace on pg_namespace.oid = pg_proc.pronamespace
                where pg_namespace.nspname = 'reveille' and pg_proc.proname = $1";
    let text: String = client.query_one(read, &[&function]).await.expect("the function is there").get(0);
    assert_eq!(text.matches(rule).count(), 1, "{function} has the rule \"{rule}\" once");
    client.batch_execute(&text.replace(rule, broken)).await.expect("the function can be replaced");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_spread_that_forgets_to_look_again_strands_messages_and_is_noticed() {
    let rule = "with told as materialized (\n    select seen.tid";
    let slower = "perform pg_sleep(0.02);\n  with told as materialized (\n    select seen.tid";
    let world = world_with("spread", rule, slower).await;
    let client = world.db.client().await;
    let text: String = client
        .query_one("select pg_get_functiondef('reveille.spread(int[], timestamptz)'::regprocedure)", &[])
        .await
        .expect("the function is there")
        .get(0);
    let again = "and head.next_seq - 1 = told.newest";
    assert_eq!(text.matches(again).count(), 1, "spread has the rule once");
    client.batch_execute(&text.replace(again, "")).await.expect("the function can be replaced");

    // Ends as soon as it is noticed; on a busy machine that may take long.
    let faults = chaos::run(&world, TIME * 8, 1).await;

    assert!(!faults.stranded.is_empty(), "nobody noticed: {faults:?}");
    world.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_settle_that_believes_any_lease_is_noticed() {
    let rule = "when asked.nonce is not null and held.nonce is distinct from asked.nonce then 'lost'";
    let world = world_with("settle", rule, "when false then 'lost'").await;

    // It takes a lease that ended under its holder: rare, and rarer on a busy machine.
    let faults = chaos::run(&world, TIME * 4, 2).await;

    assert!(!faults.list.is_empty(), "nobody noticed: {faults:?}");
    world.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_push_that_takes_duplicates_is_noticed() {
    let world = world_with("any_key_seen", "return exists (", "return false and exists (").await;
    let rule = "raise exception 'a transaction id was seen before' using errcode = 'RV001'";
    break_rule(&world, "refuse_duplicates", rule, "return true").await;

    let faults = chaos::run(&world, TIME, 3).await;

    assert!(faults.list.iter().any(|fault| fault.contains("not the first of its name")), "nobody noticed: {faults:?}");
    world.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failure_that_is_charged_twice_is_noticed_by_the_model() {
    let world = world_with("settle", "charged := charged + 1;", "charged := charged + 2;").await;

    let fault = histories::first_fault(&world, &(1..=100).collect::<Vec<u64>>()).await;

    assert!(fault.is_some(), "nobody noticed");
    world.close().await;
}
