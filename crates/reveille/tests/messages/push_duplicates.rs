//! A partition stores a transaction id once within its window.

use std::collections::HashSet;
use std::time::Duration;

use reveille::database::{Database, DatabaseOptions};
use reveille::messages::{Messages, MessagesError, MessagesOptions, PushItem, PushOutcome, Pushed, QueueOptions};
use reveille_testkit::TestCluster;
use tokio::task::JoinSet;
use uuid::{Builder, Uuid};

use crate::support::{Fixture, item, queue, rows_and_blocks, seqs, soon, until_blocked};

fn named(payload: &str, id: &str) -> PushItem {
    item("mail", "a", payload).transaction_id(id)
}

async fn push(messages: &Messages, items: Vec<PushItem>) -> Vec<Pushed> {
    soon(messages.push(items)).await.into_iter().collect::<Result<_, MessagesError>>().unwrap()
}

#[tokio::test]
async fn of_the_same_id_in_one_call_the_first_is_stored() {
    let fixture = Fixture::new().await;

    let pushed = push(&fixture.messages, vec![named("one", "x"), named("two", "y"), named("three", "x")]).await;

    assert_eq!(pushed[2].outcome, PushOutcome::Duplicate { of: pushed[0].id });
    assert_eq!((pushed[2].id, &*pushed[2].transaction_id()), (pushed[0].id, "x"));
    assert_eq!(fixture.texts("mail", "a").await, ["one", "two"]);
}

#[tokio::test]
async fn the_same_id_in_a_later_call_is_a_duplicate_and_the_rest_of_that_call_is_stored() {
    let fixture = Fixture::new().await;
    let first = push(&fixture.messages, vec![named("one", "x")]).await;

    let again = push(&fixture.messages, vec![named("two", "y"), named("three", "x"), named("four", "x")]).await;
    let later = push(&fixture.messages, vec![named("five", "z"), named("six", "y")]).await;

    assert_eq!(again[1].outcome, PushOutcome::Duplicate { of: first[0].id });
    assert_eq!(again[2].outcome, PushOutcome::Duplicate { of: first[0].id });
    assert_eq!(later[1].outcome, PushOutcome::Duplicate { of: again[0].id });
    assert_eq!(again[0].partition_uid, first[0].partition_uid);
    assert_eq!(fixture.texts("mail", "a").await, ["one", "two", "five"]);
}

#[tokio::test]
async fn ids_that_are_uuids_and_ids_that_are_words_are_both_remembered() {
    let fixture = Fixture::new().await;
    let ids = [Uuid::now_v7().to_string(), Uuid::new_v4().to_string().to_uppercase(), "order 7".into(), String::new()];
    let items = || ids.iter().map(|id| named("x", id)).collect();

    let first = push(&fixture.messages, items()).await;
    let second = push(&fixture.messages, items()).await;

    assert!(first.iter().all(|pushed| matches!(pushed.outcome, PushOutcome::Stored { .. })));
    assert!(second.iter().all(Pushed::is_duplicate));
}

#[tokio::test]
async fn the_same_id_in_another_partition_is_another_message() {
    let fixture = Fixture::new().await;

    let items = vec![item("mail", "a", "1").transaction_id("x"), item("mail", "b", "2").transaction_id("x")];
    let answers = soon(fixture.messages.push(items)).await;

    assert_eq!(seqs(&answers), [1, 1]);
}

#[tokio::test]
async fn two_nodes_that_push_the_same_id_at_once_store_it_once() {
    stored_once_by_two_nodes("x").await;
}

/// Only the lock of the partition row keeps these apart, and both statements began before either
/// had it.
#[tokio::test]
async fn two_nodes_that_push_the_same_growing_id_at_once_store_it_once() {
    stored_once_by_two_nodes(&Uuid::now_v7().to_string()).await;
}

async fn stored_once_by_two_nodes(id: &str) {
    let fixture = Fixture::new().await;
    let other = fixture.node().await;
    push(&fixture.messages, vec![named("first", "w")]).await;
    push(&other, vec![named("second", "v")]).await;
    let holder = fixture.client().await;
    holder.batch_execute("begin; select from reveille.partition_row for update").await.unwrap();
    let mut pushes = JoinSet::new();
    for node in [fixture.messages.clone(), other] {
        let both = named("both", id);
        pushes.spawn(async move { node.push_one(both).await.unwrap() });
    }
    until_blocked(&fixture.client().await, 2).await;

    holder.batch_execute("commit").await.unwrap();
    let answers = soon(pushes.join_all()).await;

    let stored: Vec<&Pushed> = answers.iter().filter(|pushed| !pushed.is_duplicate()).collect();
    let dropped: Vec<&Pushed> = answers.iter().filter(|pushed| pushed.is_duplicate()).collect();
    assert_eq!((stored.len(), dropped.len()), (1, 1));
    assert_eq!(dropped[0].outcome, PushOutcome::Duplicate { of: stored[0].id });
    assert_eq!(fixture.texts("mail", "a").await, ["first", "second", "both"]);
}

#[tokio::test]
async fn after_the_window_an_id_is_new_again() {
    let fixture = Fixture::new().await;
    let ids = ["x".to_owned(), Uuid::now_v7().to_string()];
    let items = || ids.iter().map(|id| named("text", id)).collect();
    push(&fixture.messages, items()).await;
    let over = [
        "update reveille.dedup set until = clock_timestamp() - interval '1 second'",
        "update reveille.segment set at = at - interval '1 hour'",
    ];
    for over in over {
        assert_eq!(fixture.client().await.execute(over, &[]).await.unwrap(), 1);
    }

    let again = push(&fixture.messages, items()).await;
    let third = push(&fixture.messages, items()).await;

    assert_eq!(again[0].outcome, PushOutcome::Stored { seq: 3 });
    assert_eq!(again[1].outcome, PushOutcome::Stored { seq: 4 });
    assert_eq!(third[0].outcome, PushOutcome::Duplicate { of: again[0].id });
    assert_eq!(third[1].outcome, PushOutcome::Duplicate { of: again[1].id });
}

#[tokio::test]
async fn a_queue_without_a_window_remembers_nothing() {
    let fixture = Fixture::new().await;
    let options = QueueOptions::default().dedup_window(Duration::ZERO);
    soon(fixture.messages.configure(&queue("mail"), &options)).await.unwrap();

    for id in ["x", &Uuid::now_v7().to_string()] {
        let pushed = push(&fixture.messages, vec![named("one", id), named("two", id)]).await;
        assert!(pushed.iter().all(|pushed| !pushed.is_duplicate()), "{id}");
    }

    for table in ["dedup", "dedup_run", "dedup_span", "partition_row where span_from is not null"] {
        assert_eq!(fixture.count(&format!("reveille.{table}")).await, 0, "{table}");
    }
}

/// Producers with clocks of their own, repeats at the edges of runs, runs within runs, and every
/// third push by SQL.
#[tokio::test]
async fn ids_that_grow_are_stored_once_in_whatever_order_they_come() {
    let fixture = Fixture::new().await;
    let client = fixture.client().await;
    let mut chance = fastrand::Rng::with_seed(7);
    let mut id = || {
        let rest = std::array::from_fn(|_| chance.u8(..));
        Builder::from_unix_timestamp_millis(1_800_000_000_000 + chance.u64(0..500), &rest).into_uuid().to_string()
    };
    let ids: Vec<String> = (0..400).map(|_| id()).collect();
    let mut seen = HashSet::new();

    for round in 0..60 {
        let some: Vec<&String> = (0..chance.usize(1..40)).map(|_| &ids[chance.usize(0..ids.len())]).collect();
        if round % 3 == 0 {
            for id in &some {
                let sent = "select reveille.push('mail', 'x'::bytea, 'a', $1)";
                client.execute(sent, &[id]).await.unwrap();
            }
            seen.extend(some);
            continue;
        }
        let pushed = push(&fixture.messages, some.iter().map(|id| named("x", id)).collect()).await;
        for (id, pushed) in some.into_iter().zip(pushed) {
            assert_eq!(pushed.is_duplicate(), !seen.insert(id), "{id} in round {round}");
        }
    }

    assert_eq!(fixture.texts("mail", "a").await.len(), seen.len());
    let overlap = "reveille.dedup_span as one join reveille.dedup_span as other
        on one.first_seq < other.first_seq and (one.high >= other.low or one.last_seq >= other.first_seq)";
    assert_eq!(fixture.count(overlap).await, 0);
}

/// An old repeat is searched where it must be, not everywhere between it and now.
#[tokio::test]
async fn the_search_for_an_id_reads_one_span_however_long_the_log_is() {
    let fixture = Fixture::new().await;
    let id = |n: u64| Builder::from_unix_timestamp_millis(1_800_000_000_000 + n, &[7; 10]).into_uuid().to_string();
    for some in 0..100 {
        // All arrive in order for a while. Then one in forty is from ten minutes ahead, so that no
        // other is the greatest any more.
        let ids = (0..40).map(|n| id(some * 40 + n)).chain((some >= 50).then(|| id(600_000 + some)));
        push(&fixture.messages, ids.map(|id| named("x", &id)).collect()).await;
    }
    let client = fixture.client().await;
    let reads = async |keys: Vec<u64>| {
        let keys: Vec<String> = keys.into_iter().map(|n| format!("'{}'", id(n))).collect();
        let places = format!("array_fill((select id from reveille.partition), array[{}])", keys.len());
        let asked = format!("select reveille.growing_seen({places}, array[{}]::uuid[])", keys.join(", "));
        rows_and_blocks(&client, &asked).await
    };

    // The ids of other producers lie between two spans, not within one.
    push(&fixture.messages, vec![named("x", &id(700_000))]).await;
    client
        .batch_execute("select reveille.push_many('mail', array_agg(convert_to(n::text, 'utf8')), 'a') from generate_series(1, 5000) n")
        .await
        .unwrap();
    push(&fixture.messages, vec![named("x", &id(700_001))]).await;
    assert_eq!(fixture.count("reveille.dedup_span where last_seq - first_seq >= 16 + 16 + 41").await, 0);
    for keys in [vec![700_000], vec![7], vec![7, 1999], vec![7, 3999], vec![1007, 600_070, 2007]] {
        reads(keys.clone()).await;
        let (found, blocks) = reads(keys.clone()).await;
        assert_eq!(found, keys.len(), "{keys:?}");
        assert!(blocks < 100, "{blocks} blocks were read for {keys:?}");
    }
}

/// Ids that arrive in the order they were made cost no row of their own: a span covers many, and
/// the partition row shows that an id is new.
#[tokio::test]
async fn ids_that_grow_are_remembered_by_the_log() {
    let fixture = Fixture::new().await;
    let ids: Vec<String> = (0..200).map(|_| Uuid::now_v7().to_string()).collect();
    let mut first = Vec::new();
    for id in &ids {
        first.extend(push(&fixture.messages, vec![named("x", id)]).await);
    }

    let again = push(&fixture.messages, ids.iter().rev().map(|id| named("again", id)).collect()).await;

    for (again, first) in again.iter().zip(first.iter().rev()) {
        assert_eq!(again.outcome, PushOutcome::Duplicate { of: first.id });
    }
    assert_eq!((fixture.count("reveille.dedup_run").await, fixture.count("reveille.dedup_span").await), (0, 12));
}

#[tokio::test]
async fn what_was_redriven_does_not_remember_its_id_anew() {
    let fixture = Fixture::new().await;
    let id = Uuid::now_v7().to_string();
    push(&fixture.messages, vec![named("x", &id)]).await;
    let client = fixture.client().await;
    client
        .batch_execute(
            "insert into reveille.consumer_group (queue, name, mode) select id, 'g', 'all' from reveille.queue;
             insert into reveille.dead_letter (queue, partition, grp, seq, message_id, transaction_id, payload, pushed_at,
                                               failures, deliveries)
             select partition_row.queue, partition_row.partition, consumer_group.id, 1, segment.ids[1], segment.transaction_ids[1], 'x', segment.at, 1, 1
             from reveille.partition_row, reveille.segment, reveille.consumer_group;
             update reveille.segment set at = at - interval '2 hours';
             select reveille.redrive(array[(select id from reveille.dead_letter)])",
        )
        .await
        .unwrap();

    let again = push(&fixture.messages, vec![named("again", &id)]).await;

    assert_eq!(again[0].outcome, PushOutcome::Stored { seq: 3 });
}

#[tokio::test]
async fn a_repeated_id_and_what_follows_it_reach_the_partition_of_a_re_created_queue() {
    let fixture = Fixture::new().await;
    let messages = &fixture.messages;
    let old = soon(messages.push_one(item("mail", "a", "before"))).await.unwrap().partition_uid;
    assert!(soon(fixture.node().await.delete_queue(&queue("mail"))).await.unwrap());

    let pushed = soon(messages.push(vec![named("1", "x"), named("2", "x"), named("3", "y")])).await;

    let pushed: Vec<_> = pushed.into_iter().map(|answer| answer.expect("is answered")).collect();
    assert_eq!(pushed[1].outcome, PushOutcome::Duplicate { of: pushed[0].id });
    assert_eq!(fixture.texts("mail", "a").await, ["1", "3"]);
    assert_ne!(pushed[0].partition_uid, old);
    assert!(pushed.iter().all(|answer| answer.partition_uid == pushed[0].partition_uid), "{pushed:?}");
}

/// A repeated push is what producers do after a lost answer. An error would fill the server's log
/// with statements.
#[tokio::test]
async fn a_duplicate_writes_no_error_to_the_log_of_the_server() {
    let cluster = tokio::task::spawn_blocking(|| TestCluster::start(|options| options)).await.unwrap();
    let database = soon(Database::connect(DatabaseOptions::new(cluster.url("postgres")))).await.unwrap();
    soon(database.migrate()).await.unwrap();
    let messages = Messages::new(&database, MessagesOptions::default());
    let (growing, other) = (Uuid::now_v7().to_string(), Uuid::new_v4().to_string());
    let ids = ["a name", &growing, &other];
    let items = || ids.map(|id| named("x", id)).to_vec();
    let first = push(&messages, items()).await;

    // Each on a node of its own, where appends are not careful yet.
    for id in ids {
        let node = Messages::new(&database, MessagesOptions::default());
        let again = push(&node, vec![named("x", id), named("y", &Uuid::now_v7().to_string())]).await;
        assert!(first.iter().any(|first| again[0].outcome == PushOutcome::Duplicate { of: first.id }), "{again:?}");
        assert!(matches!(again[1].outcome, PushOutcome::Stored { .. }), "{again:?}");
        node.close().await;
    }

    let log = std::fs::read_to_string(cluster.embedded().log()).unwrap();
    assert!(!log.contains("ERROR:"), "{log}");
    messages.close().await;
    database.close().await;
    tokio::task::spawn_blocking(move || drop(cluster)).await.unwrap();
}
