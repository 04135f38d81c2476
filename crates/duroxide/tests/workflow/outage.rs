//! Servers that restart, and answers that are lost.

use std::sync::Arc;
use std::time::Duration;

use duroxide::Client;
use reveille_duroxide::PostgresProvider;
use reveille_embedded::Durability;
use reveille_testkit::{Events, Shutdown, TestCluster, TestDatabase};

use crate::fault_orders::{Ledger, begin, check_complete, client, name, run, times};

const ORDERS: usize = 8;

async fn begin_all(orders: &Client) {
    for order in 0..ORDERS {
        begin(orders, order).await;
    }
}

async fn survive(how: Shutdown) {
    let cluster = Arc::new(TestCluster::start(|options| options.durability(Durability::Durable)));
    let provider = PostgresProvider::options().url(cluster.url("postgres")).open().await.expect("a provider opens");
    let ledger = Events::new();
    let working = run(&provider, Ledger::Memory(ledger.clone())).await;
    let orders = client(&provider);
    begin_all(&orders).await;

    for progress in [6, 16] {
        let mut done = 0;
        ledger
            .until(|_| {
                done += 1;
                done >= progress
            })
            .await;
        let cluster = Arc::clone(&cluster);
        tokio::task::spawn_blocking(move || cluster.restart(how)).await.expect("the server comes back");
    }

    for order in 0..ORDERS {
        check_complete(&orders, order).await;
        assert!(times(&ledger, order).iter().all(|times| *times >= 1), "{:?}", times(&ledger, order));
    }
    working.shutdown(None).await;
    provider.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn orders_survive_a_server_that_is_restarted() {
    survive(Shutdown::Fast).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn orders_survive_a_server_that_crashes() {
    survive(Shutdown::Kill).await;
}

/// The server commits, the connections are cut, the answer never comes: of an activity's end, and
/// of the last turn.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_order_goes_on_when_the_answers_to_its_commits_are_lost() {
    let database = TestDatabase::new().await;
    let (proxy, url) = database.proxied().await;
    let provider = PostgresProvider::options().url(url).open().await.unwrap();
    let ledger = Events::new();
    let working = run(&provider, Ledger::Memory(ledger.clone())).await;
    let orders = client(&provider);

    proxy.cut_after_sending(&format!("{}/0 done", name(0)));
    begin(&orders, 0).await;
    ledger.until(|step| step.ends_with("/1")).await;
    proxy.cut_after_sending("OrchestrationCompleted");

    check_complete(&orders, 0).await;
    assert_eq!(times(&ledger, 0), [1, 1, 1, 1], "nothing was done twice");
    working.shutdown(None).await;
}

/// Longer than the 0.3 s for which the runtime itself tries, within the lock's time or not: an
/// outage is no failure of an order.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn orders_survive_a_database_that_cannot_be_reached_for_longer_than_a_lock() {
    let database = TestDatabase::new().await;
    let (proxy, url) = database.proxied().await;
    let provider = PostgresProvider::options().url(url).open().await.unwrap();
    let ledger = Events::new();
    let working = run(&provider, Ledger::Memory(ledger.clone())).await;
    let orders = client(&provider);
    begin_all(&orders).await;

    for (progress, outage) in [(3, Duration::from_secs(1)), (8, Duration::from_secs(3))] {
        let mut done = 0;
        ledger
            .until(|_| {
                done += 1;
                done >= progress
            })
            .await;
        proxy.refuse();
        tokio::time::sleep(outage).await;
        proxy.heal();
    }

    for order in 0..ORDERS {
        check_complete(&orders, order).await;
    }
    working.shutdown(None).await;
}
