//! Hints between nodes.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use reveille::database::{Database, DatabaseOptions};
use reveille_testkit::TestDatabase;
use reveille_testkit::plain_queue::{self, Node, NodeOptions, SOURCE};
use reveille_wake::{Answer, Cause, Event, Outcome};
use tokio_postgres::{AsyncMessage, NoTls};

use crate::support::{NEVER, database};

async fn nodes(database: &TestDatabase, count: usize) -> Vec<Node> {
    let start = || Node::start(NodeOptions::new(database.url()).heartbeat(NEVER));
    join_all((0..count).map(|_| start())).await
}

/// Without a fault, nothing may be found that no wake-up announced.
fn none_missed(nodes: &[Node]) {
    let missed: Vec<u64> = nodes.iter().map(|node| node.counters.missed()).collect();
    assert!(missed.iter().all(|missed| *missed == 0), "missed wakes: {missed:?}");
}

/// Waits until so many claim rounds have ended, so that a demand on the queue sleeps.
async fn until_parked(node: &Node, rounds: u64) {
    let mut seen = 0;
    let mut ended = |event: &Event| {
        seen += u64::from(matches!(event, Event::RoundEnded { .. }));
        seen >= rounds
    };
    node.events.until(&mut ended).await;
}

#[tokio::test]
async fn a_push_on_one_node_wakes_a_waiter_on_another() {
    let database = database().await;
    let nodes = nodes(&database, 2).await;
    let waiting = nodes[1].ask("mail");
    until_parked(&nodes[1], 1).await;

    nodes[0].push("mail", 1).await;

    assert!(matches!(waiting.await, Answer::Lease(taken) if taken.queue == "mail"));
    assert_eq!(nodes[1].counters.wakes(Cause::Notified), 1);
    none_missed(&nodes);
}

#[tokio::test]
async fn one_push_costs_one_claim_round_on_each_of_four_nodes_with_sixty_four_waiters() {
    let database = database().await;
    let nodes = nodes(&database, 4).await;
    let waiting: Vec<_> = nodes.iter().flat_map(|node| (0..16).map(|_| node.ask("mail"))).collect();
    for node in &nodes {
        until_parked(node, 1).await;
    }
    let before: Vec<u64> = nodes.iter().map(|node| node.counters.all_rounds()).collect();

    nodes[0].push("mail", 1).await;

    for (node, before) in nodes.iter().zip(&before) {
        until_parked(node, before + 1).await;
    }
    // Hints of one node arrive in order: those before the fence have arrived when the fence is
    // answered.
    let fence: Vec<_> = nodes[1..].iter().map(|node| node.ask("fence")).collect();
    nodes[0].push("fence", 3).await;
    join_all(fence).await;
    for (node, before) in nodes.iter().zip(&before) {
        let mail = node
            .events
            .count(|event| matches!(event, Event::RoundEnded { cause: Cause::Pushed | Cause::Notified, .. }));
        let fences = node.counters.all_rounds() - before - 1;
        assert!(mail <= 3 && fences <= 2, "{mail} claim rounds for a hint, {fences} for the fence");
    }
    none_missed(&nodes);
    drop(waiting);
}

#[tokio::test]
async fn a_hundred_rows_in_one_commit_reach_a_hundred_waiters_on_four_nodes() {
    let database = database().await;
    let nodes = nodes(&database, 4).await;
    let waiting: Vec<_> = nodes.iter().flat_map(|node| (0..25).map(|_| node.ask("mail"))).collect();
    for node in &nodes {
        until_parked(node, 1).await;
    }

    nodes[0].push("mail", 100).await;

    let mut ids: Vec<i64> = join_all(waiting)
        .await
        .into_iter()
        .map(|answer| match answer {
            Answer::Lease(taken) => taken.id,
            other => panic!("a waiter got {other:?}"),
        })
        .collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 100, "each row went to one waiter");
    none_missed(&nodes);
}

#[tokio::test]
async fn a_node_alone_sends_no_hints() {
    let database = database().await;
    let nodes = nodes(&database, 1).await;
    let channel = nodes[0].database.hint_channel();
    // A listener that is no node: it receives all notifications, and causes none.
    let (listener, mut wire) = tokio_postgres::connect(&database.url(), NoTls).await.unwrap();
    let (sender, mut payloads) = tokio::sync::mpsc::channel(64);
    let mut reading = tokio::task::JoinSet::new();
    reading.spawn(async move {
        while let Some(Ok(message)) = std::future::poll_fn(|context| wire.poll_message(context)).await {
            if let AsyncMessage::Notification(notification) = message {
                let _ = sender.send(notification.payload().to_owned()).await;
            }
        }
    });
    listener.batch_execute(&format!("listen {channel}")).await.unwrap();

    let taken = nodes[0].take("mail");
    nodes[0].push("mail", 1).await;
    taken.await;
    nodes[0].database.broadcaster().flush().await;
    listener.execute("select pg_notify($1, 'the end')", &[&channel]).await.unwrap();

    while let Some(payload) = payloads.recv().await.filter(|payload| payload != "the end") {
        assert!(!payload.starts_with("hint"), "a hint was sent, though there is no other node: {payload}");
    }
}

#[tokio::test]
async fn a_program_that_pushes_and_ends_has_sent_its_hints() {
    let database = database().await;
    let nodes = nodes(&database, 1).await;
    let waiting = nodes[0].ask("mail");
    until_parked(&nodes[0], 1).await;

    let script = Database::connect(DatabaseOptions::new(database.url())).await.unwrap();
    plain_queue::add_silently(&database.client().await, "mail", 1, 0.0).await;
    script.broadcaster().announce(SOURCE, &"mail".to_owned(), Cause::Pushed);
    script.close().await;

    assert!(matches!(waiting.await, Answer::Lease(_)));
    none_missed(&nodes);
}

#[tokio::test]
async fn a_producer_in_plain_sql_wakes_a_waiter_when_it_commits() {
    let database = database().await;
    let nodes = nodes(&database, 1).await;
    let waiting = nodes[0].ask("mail");
    until_parked(&nodes[0], 1).await;
    let mut client = database.client().await;
    let channel = nodes[0].database.hint_channel();

    let transaction = client.transaction().await.unwrap();
    transaction.execute("insert into todo (queue) values ('mail')", &[]).await.unwrap();
    transaction.execute("select pg_notify($1, E'hint\\ntodo mail')", &[&channel]).await.unwrap();
    assert_eq!(nodes[0].counters.wakes(Cause::Notified), 0, "no key is woken before the commit");
    transaction.commit().await.unwrap();

    assert!(matches!(waiting.await, Answer::Lease(_)));
    none_missed(&nodes);
}

/// With two dispatchers of one kind in a process, what one pushes the other takes.
#[tokio::test]
async fn a_push_wakes_the_other_dispatcher_of_the_same_process() {
    let database = database().await;
    let options = NodeOptions::new(database.url()).heartbeat(NEVER);
    let pushing = Node::start(options.clone()).await;
    let taking = Node::on(pushing.database.clone(), &options);
    taking.until_proven().await;
    let waiting = taking.ask("mail");
    until_parked(&taking, 1).await;

    pushing.push("mail", 1).await;

    let answer = tokio::time::timeout(Duration::from_secs(10), waiting).await.expect("woken without a heartbeat");
    assert!(matches!(answer, Answer::Lease(_)));
    none_missed(&[pushing, taking]);
}

#[tokio::test]
async fn many_hints_are_sent_in_few_statements() {
    let database = database().await;
    let nodes = nodes(&database, 2).await;
    let waiting = nodes[1].ask("queue-999");
    until_parked(&nodes[1], 1).await;
    plain_queue::add_silently(&database.client().await, "queue-999", 1, 0.0).await;

    for number in 0..1000 {
        nodes[0].database.broadcaster().announce(SOURCE, &format!("queue-{number}"), Cause::Pushed);
    }
    nodes[0].database.broadcaster().flush().await;

    assert!(matches!(waiting.await, Answer::Lease(_)));
    let figures = nodes[0].database.wake_figures();
    assert_eq!(figures.announced, 1000);
    assert!(figures.coalescing() >= 10.0, "{figures:?}");
    none_missed(&nodes);
}

/// A delay is a hint too: a thousand forged ones must not cost a thousand claim rounds.
#[tokio::test]
async fn a_flood_of_forged_delays_leaves_claim_rounds_bounded() {
    let database = database().await;
    let nodes = nodes(&database, 1).await;
    let _parked = nodes[0].ask("mail");
    until_parked(&nodes[0], 1).await;
    plain_queue::add_silently(&database.client().await, "fence", 1, 2.0).await;
    let began = Instant::now();
    let before = nodes[0].counters.all_rounds();

    let forged = "select pg_notify($1, E'hint\n' || string_agg('todo mail ' || n, E'\n'))
         from generate_series(1, 2000) as n group by n / 400";
    let channel = nodes[0].database.hint_channel();
    database.client().await.execute(forged, &[&channel]).await.unwrap();
    nodes[0].take("fence").await;

    let rounds = nodes[0].counters.all_rounds() - before;
    let most = most_rounds(began.elapsed());
    assert_eq!(nodes[0].database.wake_figures().received, 2000);
    assert!(rounds <= most, "{rounds} claim rounds in {:?}, {most} at most", began.elapsed());
}

/// Echoes can be forged too; they neither prove a link nor push the true echo aside.
#[tokio::test]
async fn forged_echoes_leave_the_link_as_it_is() {
    let database = database().await;
    let node = Node::start(NodeOptions::new(database.url()).heartbeat(Duration::from_millis(50))).await;
    let forger = database.client().await;
    let channel = node.database.hint_channel();
    let beats = node.database.wake_figures().beats;

    let forged = "select pg_notify($1, 'echo ' || id || ' ' || n) from reveille.node, generate_series(1, 500) as n";
    while node.database.wake_figures().beats < beats + 20 {
        forger.execute(forged, &[&channel]).await.unwrap();
    }

    assert_eq!(node.events.count(|event| matches!(event, Event::Link(link) if link.is_broken())), 0);
    assert_eq!(node.database.wake_figures().connects, 1);
}

/// B: every role that can connect can notify.
#[tokio::test]
async fn a_flood_of_forged_notifications_leaves_claim_rounds_bounded_and_the_node_well() {
    let database = database().await;
    let nodes = nodes(&database, 2).await;
    let _parked = nodes[1].ask("mail");
    until_parked(&nodes[1], 1).await;
    let before = nodes[1].counters.all_rounds();
    let forger = database.client().await;
    let channel = nodes[1].database.hint_channel();

    let began = Instant::now();
    let forged = "select pg_notify($1, E'hint\\ntodo mail\\ntodo ' || n || E'\\n\\n*x y z w\\n') from generate_series(1, 200) as n";
    // In a shorter flood the rounds that are not spaced would hide those that must be.
    while began.elapsed() < Duration::from_secs(1) {
        forger.execute(forged, &[&channel]).await.unwrap();
        forger.execute("select pg_notify($1, 'nonsense ' || random())", &[&channel]).await.unwrap();
    }
    let taken = nodes[1].take("other");
    nodes[0].push("other", 1).await;
    taken.await;

    let rounds = nodes[1].counters.all_rounds() - before;
    let most = most_rounds(began.elapsed());
    assert!(nodes[1].database.wake_figures().received >= 4000);
    assert!(rounds <= most, "{rounds} claim rounds in {:?}, {most} at most", began.elapsed());
}

/// How many claim rounds a flood may cause in which one round finds something: rounds are spaced
/// by 5 ms after eight in a row that found nothing, and after the find eight more are free.
fn most_rounds(elapsed: Duration) -> u64 {
    let spaced = elapsed.as_millis().div_ceil(5);
    u64::try_from(spaced).unwrap() + 2 * 9
}

#[tokio::test]
async fn waiters_that_come_and_go_under_a_proven_link_cause_no_claim_rounds() {
    let database = database().await;
    let nodes = nodes(&database, 1).await;
    drop(nodes[0].ask("mail"));
    let _first = nodes[0].ask("mail");
    until_parked(&nodes[0], 1).await;
    let rounds = nodes[0].counters.rounds(Outcome::Empty);

    for _ in 0..1000 {
        drop(nodes[0].ask("mail"));
    }
    let fence = nodes[0].take("fence");
    nodes[0].push("fence", 1).await;
    fence.await;

    assert!(nodes[0].counters.rounds(Outcome::Empty) <= rounds + 1, "only the fence caused a round");
    none_missed(&nodes);
}
