//! Real concurrency, and an audit afterwards.

use std::time::Duration;

use reveille_testkit::world::{World, deadlocks};

use crate::clients;

/// How long all clients run.
const TIME: Duration = Duration::from_secs(8);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_clients_do_at_once_every_group_settles_every_message_once_and_in_order() {
    let world = World::new().await;
    let seed = fastrand::u64(..);
    println!("seed {seed}");

    let faults = clients::run(&world, TIME, seed).await;

    println!("{} pushed, {} leases, {} checks", faults.pushed, faults.leases, faults.checks);
    assert!(faults.is_empty(), "{faults:#?}");
    assert!(faults.pushed > 100 && faults.leases > 100 && faults.checks > 100, "too little happened: {faults:?}");
    let client = world.db.client().await;
    // Sessions report their counts to the server when they end.
    world.close().await;
    assert_eq!(deadlocks(&client).await, 0, "no two transactions wait for each other");
}
