//! What waiting costs.

use std::time::Duration;

use duroxide::providers::{Provider, TagFilter};
use reveille::database::{Database, DatabaseOptions};
use reveille_duroxide::PostgresProvider;
use tokio::task::JoinSet;

use crate::counted::Counted;
use crate::fault_harness::{LONG, WAIT, proven, take_turn};

/// Short enough for a test; long enough that a busy machine is not taken for a dead node.
const BEAT: Duration = Duration::from_millis(500);

async fn beats(database: &Database, more: u64) -> u64 {
    let wanted = database.wake_figures().beats + more;
    while database.wake_figures().beats < wanted {
        tokio::time::sleep(Duration::from_millis(5)).await; // tidy: sleep because a beat sends no event
    }
    database.wake_figures().beats
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn four_and_four_waiting_fetches_cost_the_heartbeat_and_nothing_else() {
    let server = Counted::start().await;
    let database = Database::connect(DatabaseOptions::new(server.url()).heartbeat(BEAT)).await.unwrap();
    database.migrate().await.unwrap();
    let provider = proven(PostgresProvider::options().database(&database)).await;
    let mut fetches = JoinSet::new();
    for _ in 0..4 {
        let (turns, activities) = (provider.clone(), provider.clone());
        fetches.spawn(async move { drop(take_turn(&turns, LONG, WAIT).await) });
        fetches.spawn(async move {
            let taken = activities.fetch_work_item(LONG, WAIT, None, &TagFilter::DefaultOnly).await;
            assert!(taken.is_ok());
        });
    }
    let before = beats(&database, 2).await;
    server.forget().await;

    let after = beats(&database, 6).await;

    let (statements, beats) = (server.all().await, i64::try_from(after - before).unwrap());
    assert!((statements - beats).abs() <= 2, "{statements} statements in {beats} beats");
}
