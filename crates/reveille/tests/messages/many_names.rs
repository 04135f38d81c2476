//! One call that names very many queues, partitions or groups: it is served, and delays no other
//! call.

use std::time::{Duration, Instant};

use reveille::messages::{Acknowledgement, PartitionUid, Pop, PushItem, Settled};
use reveille::uuid::Uuid;
use reveille_testkit::TestDatabase;

use crate::pop_kit::{Node, group, number, pop, push_to, spawn, stranded, texts};
use crate::support::{Fixture, item, push, queue, soon};

/// Made one at a time, so many take several times [`PROMPT`].
const MANY: usize = 12_000;
/// As many as one request may bring.
const MANY_ACKS: u128 = 100_000;
/// A small call takes milliseconds, and on a busy machine far less than this.
const PROMPT: Duration = Duration::from_secs(2);

fn new_names(count: usize) -> Vec<PushItem> {
    (0..count).map(|n| PushItem::new(queue(&format!("new-{n}")), "hello".to_owned())).collect()
}

#[tokio::test]
async fn a_small_push_does_not_wait_for_one_that_names_many_new_queues() {
    let it = Fixture::new().await;
    push(&it.messages, "small", "before").await;
    let messages = it.messages.clone();
    let large = spawn(async move { messages.push(new_names(MANY)).await });

    let mut slowest = Duration::ZERO;
    while !large.is_finished() {
        let began = Instant::now();
        push(&it.messages, "small", "meanwhile").await;
        slowest = slowest.max(began.elapsed());
    }

    assert!(slowest < PROMPT, "a small push took {slowest:?}");
    assert!(soon(large).await.unwrap().iter().all(Result::is_ok));
    assert_eq!(it.count("reveille.queue").await, i64::try_from(MANY).unwrap() + 1);
}

#[tokio::test]
async fn a_pop_that_waits_for_one_of_many_new_queues_is_woken() {
    let db = TestDatabase::new().await;
    let node = Node::on(&db).await.proven().await;
    let waiting = [node.joined(Pop::queue(queue("new-0"))).await, node.joined(Pop::queue(queue("new-2999"))).await];

    for pushed in soon(node.messages.push(new_names(3000))).await {
        pushed.unwrap();
    }

    for waiting in waiting {
        assert_eq!(texts(&soon(waiting).await.unwrap().unwrap()), ["hello"]);
    }
}

/// The flush of the second push waits behind that of the first, with the partitions it found
/// before.
#[tokio::test]
async fn queues_that_are_deleted_while_a_push_waits_for_its_turn_are_re_created() {
    let it = Fixture::new().await;
    push(&it.messages, "first", "before").await;
    let (mut holder, elsewhere) = (it.client().await, it.client().await);
    let held = holder.transaction().await.unwrap();
    held.batch_execute("lock table reveille.segment in exclusive mode").await.unwrap();
    let (before, behind) = (it.messages.clone(), it.messages.clone());
    let many = || (0..64).map(|n| item("first", &format!("p{n}"), "held")).collect();
    let first = spawn(async move { before.push(many()).await });
    let second = spawn(async move { behind.push(new_names(2000)).await });
    soon(async {
        while it.count("reveille.queue").await < 2001 {
            tokio::task::yield_now().await;
        }
    })
    .await;

    let gone = "delete from reveille.queue where name in ('new-0', 'new-1999')";
    assert_eq!(elsewhere.execute(gone, &[]).await.unwrap(), 2);
    held.rollback().await.unwrap();

    for pushed in soon(first).await.unwrap().into_iter().chain(soon(second).await.unwrap()) {
        pushed.unwrap();
    }
    for name in ["new-0", "new-1", "new-1999"] {
        assert_eq!(it.texts(name, "Default").await, ["hello"], "{name}");
    }
}

#[tokio::test]
async fn two_that_make_the_same_names_in_other_orders_both_succeed() {
    let it = Fixture::new().await;
    let elsewhere = it.node().await;
    let backwards: Vec<PushItem> = new_names(2000).into_iter().rev().collect();

    let (here, there) = tokio::join!(soon(it.messages.push(new_names(2000))), soon(elsewhere.push(backwards)));

    assert!(here.iter().chain(&there).all(Result::is_ok));
    assert_eq!(it.count("reveille.queue").await, 2000);
    assert_eq!(it.count("reveille.partition").await, 2000);
    assert_eq!(it.count("reveille.partition_row").await, 2000);
}

#[tokio::test]
async fn acks_of_many_partitions_that_are_not_there_are_answered_together() {
    let it = Fixture::new().await;
    let unknown = |n: u128| Acknowledgement::new(PartitionUid(Uuid::from_u128(n)), "nothing");

    let began = Instant::now();
    let settled = soon(it.messages.acknowledge((0..MANY_ACKS).map(unknown).collect())).await;

    assert!(began.elapsed() < PROMPT, "it took {:?}", began.elapsed());
    assert_eq!(settled.len() as u128, MANY_ACKS);
    assert!(settled.into_iter().all(|settled| settled.unwrap() == Settled::NotFound));
}

/// No table has statistics, as in the first minute of a new database.
#[tokio::test]
async fn many_groups_are_listed_before_anything_was_analyzed() {
    let it = Fixture::new().await;
    push(&it.messages, "busy", "hello").await;
    let make = "insert into reveille.consumer_group (queue, name, mode, settled)
                select (select id from reveille.queue), 'g' || n, 'all', true from generate_series(1, 6000) n;
                insert into reveille.cursor (partition, grp, upto, due_at)
                select (select id from reveille.partition), id, 1, clock_timestamp() from reveille.consumer_group";
    it.client().await.batch_execute(make).await.unwrap();

    let began = Instant::now();
    let groups = soon(it.messages.groups(None, None)).await.unwrap();

    assert!(began.elapsed() < PROMPT, "it took {:?}", began.elapsed());
    assert_eq!((groups.len(), groups[0].lag), (6000, 1));
}

/// All cursors that one transaction makes have its number.
#[tokio::test]
async fn the_cursors_of_a_new_group_are_made_a_few_at_a_time() {
    let it = Fixture::new().await;
    let client = it.client().await;
    let make = "select from reveille.ensure('wide', (select array_agg('p' || n) from generate_series(1, 5000) n))";
    client.execute(make, &[]).await.unwrap();
    push_to(&it.messages, "wide", "p7", &["hello"]).await;

    let popped = pop(&it.messages, Pop::queue(queue("wide")).group(group("g"))).await.unwrap();

    assert_eq!(texts(&popped), ["hello"]);
    assert_eq!(it.count("reveille.cursor").await, 5000);
    let together = "select max(n) from (select count(*) as n from reveille.cursor group by xmin::text) as made";
    assert!(number(&client, together).await <= 2000, "one transaction made too many");
    assert_eq!(stranded(&client).await, 0);
}
