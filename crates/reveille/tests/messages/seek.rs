//! Groups that are moved.

use std::time::{Duration, SystemTime};

use reveille::messages::{MessagesError, Pop, SeekTo, Settled, Settlement};

use crate::pop_kit::{Node, group, none, pop, pop_queue, push_to, spawn, stranded, texts};
use crate::settle_kit::{Aside, complete, settle};
use crate::support::{Fixture, partition, queue, soon, until_blocked};

fn plain() -> reveille::messages::GroupName {
    reveille::messages::GroupName::queue_mode()
}

#[tokio::test]
async fn a_group_can_read_everything_again_or_skip_to_the_end() {
    let it = Fixture::new().await;
    push_to(&it.messages, "mail", "a", &["1", "2", "3"]).await;
    complete(&it.messages, &pop_queue(&it.messages, "mail", 2).await).await;

    let back = it.messages.seek(&queue("mail"), &plain(), None, SeekTo::Beginning).await.unwrap();
    assert_eq!((back.partitions, back.clamped), (1, 0));
    assert_eq!(texts(&pop_queue(&it.messages, "mail", 9).await), ["1", "2", "3"]);

    it.messages.seek(&queue("mail"), &plain(), None, SeekTo::End).await.unwrap();
    none(&it.messages, "mail").await;
    assert!(!it.cursor().await.due);
    push_to(&it.messages, "mail", "a", &["4"]).await;
    assert_eq!(texts(&pop_queue(&it.messages, "mail", 9).await), ["4"]);
}

#[tokio::test]
async fn a_seek_under_a_live_lease_ends_it() {
    let it = Fixture::new().await;
    push_to(&it.messages, "mail", "a", &["1", "2"]).await;
    let batch = pop_queue(&it.messages, "mail", 1).await;

    it.messages.seek(&queue("mail"), &plain(), None, SeekTo::Beginning).await.unwrap();

    assert_eq!(settle(&it.messages, Settlement::complete(&batch.partitions[0])).await, Settled::LeaseLost);
    assert!(it.messages.renew(batch.lease.unwrap(), None).await.unwrap().is_none());
    assert_eq!(texts(&pop_queue(&it.messages, "mail", 2).await), ["1", "2"]);
}

#[tokio::test]
async fn a_moment_is_found_in_a_long_partition() {
    let it = Fixture::new().await;
    for n in 1..=40 {
        push_to(&it.messages, "mail", "a", &[&format!("{n}a"), &format!("{n}b")]).await;
    }
    // Segment n is n minutes younger than the first one.
    let spaced =
        "update reveille.segment set at = timestamptz '2020-01-01 00:00Z' + last_seq / 2 * interval '1 minute'";
    it.client().await.execute(spaced, &[]).await.unwrap();
    pop_queue(&it.messages, "mail", 1).await;
    let minute = |minutes: u64| SystemTime::UNIX_EPOCH + Duration::from_secs(1_577_836_800 + minutes * 60);

    for (time, first) in
        [(minute(7), "7a"), (minute(40), "40a"), (minute(0), "1a"), (minute(23) + Duration::from_secs(1), "24a")]
    {
        it.messages.seek(&queue("mail"), &plain(), None, SeekTo::Time(time)).await.unwrap();
        assert_eq!(texts(&pop_queue(&it.messages, "mail", 1).await), [first]);
    }
    it.messages.seek(&queue("mail"), &plain(), None, SeekTo::Time(minute(41))).await.unwrap();
    none(&it.messages, "mail").await;
    let ever = SystemTime::UNIX_EPOCH - Duration::from_secs(1 << 40);
    it.messages.seek(&queue("mail"), &plain(), None, SeekTo::Time(ever)).await.unwrap();
    assert_eq!(texts(&pop_queue(&it.messages, "mail", 1).await), ["1a"]);
}

#[tokio::test]
async fn what_is_not_kept_cannot_be_sought_and_the_answer_says_so() {
    let it = Fixture::new().await;
    push_to(&it.messages, "mail", "a", &["1", "2", "3"]).await;
    it.age(3600).await;
    push_to(&it.messages, "mail", "a", &["4"]).await;
    complete(&it.messages, &pop_queue(&it.messages, "mail", 9).await).await;
    it.set("mail", "retention = interval '10 minutes'").await;
    it.messages.upkeep().await.unwrap();

    let hour_ago = it.now().await - Duration::from_secs(7200);
    for to in [SeekTo::Beginning, SeekTo::After(1), SeekTo::Time(hour_ago)] {
        let sought = it.messages.seek(&queue("mail"), &plain(), None, to).await.unwrap();
        assert_eq!((sought.partitions, sought.clamped), (1, 1), "{to:?}");
        assert_eq!(texts(&pop_queue(&it.messages, "mail", 9).await), ["4"]);
    }
    let beyond = it.messages.seek(&queue("mail"), &plain(), None, SeekTo::After(i64::MAX)).await.unwrap();
    assert_eq!(beyond.clamped, 1);
    none(&it.messages, "mail").await;
    let exact = it.messages.seek(&queue("mail"), &plain(), None, SeekTo::After(3)).await.unwrap();
    assert_eq!(exact.clamped, 0);
}

#[tokio::test]
async fn one_partition_can_be_moved_alone() {
    let it = Fixture::new().await;
    push_to(&it.messages, "mail", "a", &["a1"]).await;
    push_to(&it.messages, "mail", "b", &["b1"]).await;
    let both = pop(&it.messages, Pop::queue(queue("mail")).batch(9).partitions(9)).await.unwrap();
    complete(&it.messages, &both).await;

    let sought = it.messages.seek(&queue("mail"), &plain(), Some(&partition("b")), SeekTo::Beginning).await.unwrap();

    assert_eq!(sought.partitions, 1);
    let again = pop(&it.messages, Pop::queue(queue("mail")).batch(9).partitions(9)).await.unwrap();
    assert_eq!(texts(&again), ["b1"]);
}

#[tokio::test]
async fn a_seek_wakes_waiting_pops_on_every_node() {
    let it = Fixture::new().await;
    push_to(&it.messages, "mail", "a", &["1"]).await;
    complete(&it.messages, &pop_queue(&it.messages, "mail", 1).await).await;
    for node in [Node::on(&it.db).await.proven().await, Node::on(&it.db).await.proven().await] {
        let waiting = node.parked(Pop::queue(queue("mail"))).await;

        it.messages.seek(&queue("mail"), &plain(), None, SeekTo::Beginning).await.unwrap();

        let batch = soon(waiting).await.unwrap().unwrap();
        assert_eq!(texts(&batch), ["1"]);
        complete(&it.messages, &batch).await;
    }
}

#[tokio::test]
async fn names_and_numbers_that_mean_nothing_are_refused_in_words() {
    let it = Fixture::new().await;
    push_to(&it.messages, "mail", "a", &["1"]).await;
    let text = |error: MessagesError| error.to_string();
    let seek = |name: &str, by: &str, to| {
        let (messages, name, by) = (it.messages.clone(), queue(name), group(by));
        async move { messages.seek(&name, &by, None, to).await }
    };

    assert_eq!(text(seek("fax", "x", SeekTo::End).await.unwrap_err()), "there is no queue \"fax\"");
    assert_eq!(text(seek("mail", "x", SeekTo::End).await.unwrap_err()), "there is no consumer group \"x\"");
    pop_queue(&it.messages, "mail", 1).await;
    let negative = seek("mail", "__QUEUE_MODE__", SeekTo::After(-1)).await.unwrap_err();
    assert_eq!(text(negative), "a sequence to seek must be zero or more, not -1");
    let nowhere = it.messages.seek(&queue("mail"), &plain(), Some(&partition("z")), SeekTo::End).await.unwrap_err();
    assert_eq!(text(nowhere), "there is no partition \"z\"");
}

#[tokio::test]
async fn a_push_during_a_seek_to_the_end_is_not_stranded() {
    let it = Fixture::new().await;
    push_to(&it.messages, "mail", "a", &["1"]).await;
    pop_queue(&it.messages, "mail", 1).await;
    let mut other = it.client().await;
    let held = other.transaction().await.unwrap();
    held.execute("select 1 from reveille.cursor for update", &[]).await.unwrap();

    let messages = it.messages.clone();
    let seek = Aside::begin(async move { messages.seek(&queue("mail"), &plain(), None, SeekTo::End).await });
    until_blocked(&it.client().await, 1).await;
    push_to(&it.messages, "mail", "a", &["2"]).await;
    held.commit().await.unwrap();
    seek.done().await.unwrap();
    push_to(&it.messages, "mail", "a", &["3"]).await;

    assert_eq!(stranded(&it.client().await).await, 0);
    assert_eq!(
        texts(&pop_queue(&it.messages, "mail", 9).await),
        ["3"],
        "what was pushed before the seek came to it is passed"
    );
}

/// Another transaction creates the group's cursor in a new partition, then locks its other cursor.
/// A seek that held the other cursor while it waits to create this one would deadlock.
#[tokio::test]
async fn a_seek_holds_no_cursor_that_the_creator_of_another_cursor_waits_for() {
    let it = Fixture::new().await;
    push_to(&it.messages, "mail", "a", &["1"]).await;
    complete(&it.messages, &pop_queue(&it.messages, "mail", 1).await).await;
    push_to(&it.messages, "mail", "b", &["2"]).await;
    let (mut other, watcher) = (it.client().await, it.client().await);
    let creating = other.transaction().await.unwrap();
    let make = "insert into reveille.cursor (partition, grp, upto, due_at)
         select partition.id, consumer_group.id, 1, clock_timestamp()
         from reveille.partition, reveille.consumer_group where partition.name = 'b'";
    assert_eq!(creating.execute(make, &[]).await.unwrap(), 1);

    let messages = it.messages.clone();
    let seeking = spawn(async move { messages.seek(&queue("mail"), &plain(), None, SeekTo::Beginning).await });
    until_blocked(&watcher, 1).await;
    soon(creating.execute("select from reveille.cursor order by partition for update", &[])).await.unwrap();
    creating.commit().await.unwrap();

    assert_eq!(soon(seeking).await.unwrap().unwrap().partitions, 2);
    assert_eq!(texts(&pop(&it.messages, Pop::queue(queue("mail")).batch(9).partitions(9)).await.unwrap()), ["1", "2"]);
}

/// This process remembers the partition of a queue that another one has deleted.
#[tokio::test]
async fn a_seek_finds_the_partition_of_a_queue_that_was_re_created_elsewhere() {
    let it = Fixture::new().await;
    let other = it.node().await;
    push_to(&it.messages, "mail", "a", &["old"]).await;
    assert!(other.delete_queue(&queue("mail")).await.unwrap());
    push_to(&other, "mail", "a", &["1", "2"]).await;
    let batch = pop_queue(&other, "mail", 1).await;

    let sought = it.messages.seek(&queue("mail"), &plain(), Some(&partition("a")), SeekTo::After(1)).await.unwrap();

    assert_eq!(sought.partitions, 1);
    assert_eq!(settle(&other, Settlement::complete(&batch.partitions[0])).await, Settled::LeaseLost);
    assert_eq!(texts(&pop_queue(&other, "mail", 9).await), ["2"]);
}
