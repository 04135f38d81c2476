//! What waiting costs.

use std::sync::Arc;
use std::time::Duration;

use reveille::database::{Database, DatabaseOptions};
use reveille::service::HubSource;
use reveille_testkit::plain_queue::{self, Node, NodeOptions};
use reveille_testkit::{Events, TestCluster, connect};
use reveille_wake::{Cause, Event, Hub, HubOptions};

use crate::support::{NEVER, broke, database, parked};

/// Short enough for a test; long enough that a node on a busy machine is not taken for dead, which
/// would wake every key.
const BEAT: Duration = Duration::from_millis(500);

async fn beats(database: &Database, more: u64) -> u64 {
    let wanted = database.wake_figures().beats + more;
    while database.wake_figures().beats < wanted {
        tokio::time::sleep(Duration::from_millis(5)).await; // tidy: sleep because a beat wakes no key
    }
    database.wake_figures().beats
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_keys_and_sixteen_dispatchers_cost_one_statement_a_heartbeat_and_no_claim_round() {
    let cluster = TestCluster::start(|options| options.setting("shared_preload_libraries", "pg_stat_statements"));
    let url = cluster.url("postgres");
    let admin = connect(&url).await;
    admin.batch_execute("create extension pg_stat_statements").await.unwrap();
    plain_queue::create(&admin).await;
    let options = NodeOptions { database: DatabaseOptions::new(&url).heartbeat(BEAT), ..NodeOptions::new(&url) };
    let database = Database::connect(options.database.clone()).await.unwrap();
    database.migrate().await.unwrap();
    let nodes: Vec<Node> = (0..16).map(|_| Node::on(database.clone(), &options)).collect();
    for node in &nodes {
        node.until_proven().await;
    }
    let waiting: Vec<_> = (0..1000).map(|number| nodes[number % 16].ask(&format!("queue-{number}"))).collect();
    for (number, node) in nodes.iter().enumerate() {
        until_known_empty(node, 1000_usize.div_ceil(16) - usize::from(number >= 1000 % 16)).await;
    }
    let rounds = || nodes.iter().map(|node| node.counters.all_rounds()).sum::<u64>();
    beats(&database, 1).await;
    let (rounds_before, before) = (rounds(), database.wake_figures().beats);
    admin.batch_execute("select pg_stat_statements_reset()").await.unwrap();

    beats(&database, 6).await;

    let count = "select sum(calls)::bigint from pg_stat_statements where query not like '%pg_stat_statements%'";
    let statements: i64 = admin.query_one(count, &[]).await.unwrap().get(0);
    let beats = i64::try_from(database.wake_figures().beats - before).unwrap();
    assert!((statements - beats).abs() <= 2, "{statements} statements in {beats} beats");
    assert_eq!(rounds(), rounds_before, "there was no claim round");
    assert_eq!(nodes.iter().map(|node| node.counters.missed()).sum::<u64>(), 0);
    drop(waiting);
    for node in nodes {
        node.close().await;
    }
}

/// Waits until so many keys are waited for and each was in a claim round.
async fn until_known_empty(node: &Node, keys: usize) {
    let mut claimed = 0;
    let mut all = |event: &Event| {
        if let Event::RoundEnded { keys, .. } = event {
            claimed += keys;
        }
        claimed >= keys
    };
    node.events.until(&mut all).await;
}

#[tokio::test]
async fn ten_thousand_waited_keys_fit_in_one_heartbeat() {
    let database = database().await;
    let way = Database::connect(DatabaseOptions::new(database.url()).heartbeat(BEAT)).await.unwrap();
    let events = Events::new();
    let seen = events.clone();
    let observer = move |event: &Event| seen.record(*event);
    let (hub, _dues) = Hub::new(HubOptions::default().observer(Arc::new(observer)));
    let mut watch = hub.watch();
    (0..10_000).for_each(|number| watch.arm(format!("queue-{number}")).unwrap());
    let survey = "select ordinal, 0 as due_s from unnest({keys}) with ordinality as waited (key, ordinal) \
         join public.todo on todo.queue = waited.key";
    let _registered = way.register(Arc::new(HubSource::new("todo", survey, hub)));
    events.until(|event| matches!(event, Event::Link(link) if link.is_proven())).await;
    beats(&way, 2).await;

    plain_queue::add_silently(&database.client().await, "queue-9999", 1, 0.0).await;

    events.until(|event| matches!(event, Event::Woken { cause: Cause::Due, .. })).await;
    assert_eq!(events.count(broke), 0);
    way.close().await;
}

/// A listener that held a snapshot would keep VACUUM from the whole database.
#[tokio::test]
async fn an_idle_listener_holds_no_snapshot_and_no_transaction() {
    let database = database().await;
    let node = Node::start(NodeOptions::new(database.url()).heartbeat(NEVER)).await;
    let _waiting = node.ask("mail");
    parked(&node).await;
    let client = database.client().await;

    let ask = "select state, backend_xmin is null and backend_xid is null and xact_start is null from pg_stat_activity
         where datname = current_database() and application_name = 'reveille listen'";
    let row = client.query_one(ask, &[]).await.unwrap();

    assert_eq!((row.get(0), row.get(1)), ("idle", true));
}
