//! Can the comparison fail? A rule is broken on purpose, and somebody must notice.

use reveille_testkit::world::World;

use crate::histories;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failure_that_is_charged_twice_is_noticed_by_the_model() {
    let world = World::new().await;
    world.break_rule("settle", "charged := charged + 1;", "charged := charged + 2;").await;

    let fault = histories::first_fault(&world, &(1..=100).collect::<Vec<u64>>()).await;

    assert!(fault.is_some(), "nobody noticed");
    world.close().await;
}
