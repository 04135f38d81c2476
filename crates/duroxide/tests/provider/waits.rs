//! How fetches wait, and which of them are woken.

use std::collections::BTreeSet;
use std::future::poll_fn;
use std::task::Poll;
use std::time::{Duration, Instant};

use duroxide::providers::{Provider, WorkItem};
use reveille_duroxide::{FallbackCauses, LongPollConfig, Policy, PostgresProvider};
use reveille_testkit::TestDatabase;
use tokio::task::JoinSet;

use crate::counted::Counted;
use crate::fault_harness::{LONG, WAIT, end_turn, open, open_with, proven, start, take_turn};

#[tokio::test]
async fn a_fetch_waits_no_longer_than_max_wait_time() {
    let database = TestDatabase::new().await;
    let longest = Duration::from_millis(300);
    let provider = open_with(&database, LongPollConfig { max_wait_time: longest, ..LongPollConfig::on() }).await;
    let began = Instant::now();

    let found = take_turn(&provider, LONG, WAIT).await;

    assert_eq!(found, None);
    let waited = began.elapsed();
    assert!(longest <= waited && waited < WAIT / 2, "{waited:?}");
}

#[tokio::test]
async fn work_that_is_there_is_fetched_without_waiting() {
    let database = TestDatabase::new().await;
    let provider = open(&database).await;
    provider.enqueue_for_orchestrator(start("order"), None).await.unwrap();

    let found = take_turn(&provider, LONG, Duration::ZERO).await;

    assert!(found.is_some());
}

#[tokio::test]
async fn a_timer_wakes_a_fetch_at_its_time_and_not_before() {
    let database = TestDatabase::new().await;
    let provider = open(&database).await;
    provider.enqueue_for_orchestrator(start("order"), None).await.unwrap();
    let token = take_turn(&provider, LONG, WAIT).await.unwrap();
    let client = database.client().await;
    let clock = async || -> i64 {
        let now = "select (extract(epoch from clock_timestamp()) * 1000)::bigint";
        client.query_one(now, &[]).await.unwrap().get(0)
    };
    let due_ms = clock().await + 700;
    let timer = WorkItem::TimerFired {
        instance: "order".to_owned(),
        execution_id: 1,
        id: 2,
        fire_at_ms: u64::try_from(due_ms).unwrap(),
    };

    end_turn(&provider, "order", &token, vec![timer]).await.unwrap();
    let fired = take_turn(&provider, LONG, WAIT).await;

    assert!(fired.is_some());
    let late_ms = clock().await - due_ms;
    assert!((0..500).contains(&late_ms), "{late_ms} ms late");
}

/// How many claim rounds ten messages cost, one after the other, while twenty fetches wait on each
/// node.
async fn rounds_for_ten_messages(nodes: usize) -> i64 {
    let server = Counted::start().await;
    // On a machine so busy that a woken dispatcher comes late, it would begin fallback polling:
    // those rounds are not counted here.
    let config = LongPollConfig { causes: FallbackCauses::NONE, notify_delivery_timeout: WAIT, ..LongPollConfig::on() };
    let mut providers = Vec::new();
    for _ in 0..nodes {
        providers.push(proven(PostgresProvider::options().url(server.url()).long_poll(config)).await);
    }
    let mut fetches = JoinSet::new();
    for node in providers.iter().flat_map(|node| std::iter::repeat_n(node, 20)) {
        let node = node.clone();
        let mut fetch = Box::pin(async move { assert!(take_turn(&node, LONG, WAIT).await.is_some()) });
        // Begun here, in line before the first message is sent, however late its task runs.
        assert_eq!(poll_fn(|context| Poll::Ready(fetch.as_mut().poll(context))).await, Poll::Pending);
        fetches.spawn(fetch);
    }
    let mut send = async |number: usize| {
        let item = start(&format!("order-{number}"));
        providers[number % nodes].enqueue_for_orchestrator(item, None).await.expect("a message can be sent");
        fetches.join_next().await.expect("a fetch waits").expect("and gets it");
    };
    // When these have been taken, all other fetches have claimed once and sleep.
    for number in 0..2 {
        send(number).await;
    }
    server.forget().await;

    for number in 2..12 {
        send(number).await;
    }

    server.turn_claims("duroxide").await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_costs_one_claim_round_however_many_fetches_wait() {
    let rounds = rounds_for_ten_messages(1).await;

    assert!((10..=12).contains(&rounds), "{rounds} claim rounds for ten messages");
}

/// One on each node; and one more on the node that found the row locked by the other, which might
/// have given it back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_costs_each_of_two_nodes_one_claim_round_and_one_more_where_they_meet() {
    let rounds = rounds_for_ten_messages(2).await;

    assert!((10..=33).contains(&rounds), "{rounds} claim rounds for ten messages on two nodes");
}

/// How many claim rounds one message costs while eight fetches wait; at least `expected` are waited
/// for.
async fn rounds_for_one_message(policy: Policy, expected: i64) -> i64 {
    let server = Counted::start().await;
    let config = LongPollConfig { policy, causes: FallbackCauses::NONE, ..LongPollConfig::on() };
    let provider = proven(PostgresProvider::options().url(server.url()).long_poll(config)).await;
    // Until a fetch that waits a moment costs nothing: the queue is known to be empty, and
    // newcomers need no round.
    loop {
        server.forget().await;
        assert_eq!(take_turn(&provider, LONG, Duration::from_millis(1)).await, None);
        if server.turn_claims("duroxide").await == 0 {
            break;
        }
    }
    let mut fetches = JoinSet::new();
    for _ in 0..8 {
        let provider = provider.clone();
        let mut fetch = Box::pin(async move { provider.fetch_orchestration_item(LONG, WAIT, None).await });
        assert!(poll_fn(|context| Poll::Ready(fetch.as_mut().poll(context))).await.is_pending());
        fetches.spawn(fetch);
    }

    provider.enqueue_for_orchestrator(start("order"), None).await.expect("a message can be sent");
    assert!(matches!(fetches.join_next().await, Some(Ok(Ok(Some(_))))), "a fetch gets it");
    let all_rounds = async { while server.turn_claims("duroxide").await < expected {} };
    tokio::time::timeout(WAIT / 2, all_rounds).await.expect("as many rounds as the policy says");
    provider.close().await;

    server.turn_claims("duroxide").await
}

/// On a machine so busy that an echo comes late, the link counts as stalled for a moment, and when
/// it is proven again every key is claimed from once more: seen with a load of ten.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_policy_decides_how_many_claim_rounds_a_message_costs() {
    let competing = rounds_for_one_message(Policy::Competing, 1).await;
    let broadcast = rounds_for_one_message(Policy::Broadcast, 8).await;

    assert!((1..=2).contains(&competing), "one for all eight fetches, not {competing}");
    assert!((8..=16).contains(&broadcast), "one for each of the eight fetches, not {broadcast}");
}

#[tokio::test]
async fn of_four_waiting_fetches_one_gets_a_message_and_the_others_wait_on() {
    let database = TestDatabase::new().await;
    let provider = open(&database).await;
    let mut fetches = JoinSet::new();
    for _ in 0..4 {
        let provider = provider.clone();
        fetches.spawn(async move { take_turn(&provider, LONG, WAIT).await });
    }

    provider.enqueue_for_orchestrator(start("order"), None).await.unwrap();
    let winner = fetches.join_next().await.unwrap().unwrap();

    assert!(winner.is_some());
    assert!(fetches.try_join_next().is_none(), "the others wait on");
    for number in 1..4 {
        provider.enqueue_for_orchestrator(start(&format!("order-{number}")), None).await.unwrap();
        assert!(fetches.join_next().await.unwrap().unwrap().is_some());
    }
}

#[tokio::test]
async fn both_policies_bring_every_message_to_one_fetch() {
    for policy in [Policy::Competing, Policy::Broadcast] {
        let database = TestDatabase::new().await;
        let config = LongPollConfig { policy, ..LongPollConfig::on() };
        let (here, there) = (open_with(&database, config).await, open_with(&database, config).await);
        let mut fetches = JoinSet::new();
        for number in 0..8 {
            let provider = if number % 2 == 0 { here.clone() } else { there.clone() };
            fetches.spawn(async move {
                let (item, ..) = provider.fetch_orchestration_item(LONG, WAIT, None).await.unwrap().unwrap();
                item.instance
            });
        }

        for number in 0..8 {
            here.enqueue_for_orchestrator(start(&format!("order-{number}")), None).await.unwrap();
        }

        let fetched: BTreeSet<String> = fetches.join_all().await.into_iter().collect();
        assert_eq!(fetched.len(), 8, "{policy:?}");
    }
}

/// The runtime's default wait is 30 s; a program that uses these constructors relies on an answer
/// at once.
#[tokio::test]
async fn the_constructors_of_duroxide_pg_wait_only_when_their_name_says_so() {
    let database = TestDatabase::new().await;
    let url = database.url();
    let polling = [
        PostgresProvider::new(&url).await.unwrap(),
        PostgresProvider::new_with_schema(&url, Some("polling")).await.unwrap(),
    ];
    for provider in polling {
        let began = Instant::now();
        assert_eq!(take_turn(&provider, LONG, WAIT).await, None);
        assert!(began.elapsed() < WAIT / 4);
        assert!(!provider.database().link().is_proven(), "there is no listener");
    }

    let waiting = [
        PostgresProvider::new_with_long_poll(&url).await.unwrap(),
        PostgresProvider::new_with_long_poll_and_schema(&url, Some("waiting")).await.unwrap(),
        PostgresProvider::new_with_options(&url, Some("chosen"), LongPollConfig::on()).await.unwrap(),
    ];
    for provider in waiting {
        let fetch = take_turn(&provider, LONG, WAIT);
        let (found, sent) = tokio::join!(fetch, provider.enqueue_for_orchestrator(start("order"), None));
        assert!(found.is_some() && sent.is_ok());
    }
}

#[tokio::test]
async fn a_provider_that_does_not_wait_runs_messages_and_activities_all_the_same() {
    let database = TestDatabase::new().await;
    let provider = PostgresProvider::new(&database.url()).await.unwrap();
    provider.enqueue_for_orchestrator(start("order"), None).await.unwrap();
    let token = take_turn(&provider, LONG, Duration::ZERO).await.unwrap();

    end_turn(&provider, "order", &token, Vec::new()).await.unwrap();

    assert_eq!(provider.read("order").await.unwrap().len(), 1);
    assert_eq!(take_turn(&provider, LONG, Duration::ZERO).await, None);
}
