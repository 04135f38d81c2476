//! Can the checks fail? The rules are broken on purpose, one at a time, and a check must notice.

use std::time::Duration;

use reveille_testkit::world::World;

use crate::clients;

/// Long enough for a rule that is broken to show.
const TIME: Duration = Duration::from_secs(4);

/// A world in which one function has another text.
async fn world_with(function: &str, rule: &str, broken: &str) -> World {
    let world = World::new().await;
    world.break_rule(function, rule, broken).await;
    world
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_mark_ready_that_does_not_check_again_strands_messages_and_is_noticed() {
    let rule = "with passed_on as materialized (\n    select seen.tid";
    let slower = "perform pg_sleep(0.02);\n  with passed_on as materialized (\n    select seen.tid";
    let world = world_with("mark_ready", rule, slower).await;
    world.break_rule("mark_ready", "and partition_row.next_seq - 1 = new_partition.newest", "").await;

    // Ends as soon as it is noticed; on a busy machine that may take long.
    let faults = clients::run(&world, TIME * 8, 1).await;

    assert!(!faults.stranded.is_empty(), "not noticed: {faults:?}");
    world.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_settle_that_believes_any_lease_is_noticed() {
    let rule = "when asked.nonce is not null and held.nonce is distinct from asked.nonce then 'lost'";
    let world = world_with("settle", rule, "when false then 'lost'").await;

    // It takes a lease that ended under its holder: rare, and rarer on a busy machine.
    let faults = clients::run(&world, TIME * 4, 2).await;

    assert!(!faults.list.is_empty(), "not noticed: {faults:?}");
    world.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_push_that_takes_duplicates_is_noticed() {
    let world = world_with("any_key_seen", "return exists (", "return false and exists (").await;
    let rule = "raise exception 'a transaction id was seen before' using errcode = 'RV001'";
    world.break_rule("refuse_duplicates", rule, "return true").await;

    let faults = clients::run(&world, TIME, 3).await;

    assert!(faults.list.iter().any(|fault| fault.contains("not the first of its name")), "not noticed: {faults:?}");
    world.close().await;
}
