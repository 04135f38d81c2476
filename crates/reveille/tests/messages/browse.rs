//! Browsing messages, deleting one, and traces.

use std::time::Duration;

use reveille::messages::MessageState::{Completed, Dead, Leased, Pending};
use reveille::messages::{Browse, MessageState, MessagesError, NewTrace, Page, PartitionUid, Pop, Settlement, Trace};
use reveille::uuid::Uuid;

use crate::pop_kit::{group, none, pop, pop_queue, push_to, texts};
use crate::settle_kit::{complete, settle};
use crate::support::{Fixture, item, partition, queue};

fn ids(seen: &[reveille::messages::Seen]) -> Vec<&str> {
    seen.iter().map(|message| message.transaction_id.as_str()).collect()
}

async fn push_named(it: &Fixture, partition: &str, names: &[&str]) -> PartitionUid {
    let items = names.iter().map(|name| item("mail", partition, name).transaction_id(*name)).collect();
    let pushed = it.messages.push(items).await;
    pushed.into_iter().map(|pushed| pushed.unwrap().partition_uid.unwrap()).next().unwrap()
}

#[tokio::test]
async fn the_newest_come_first_with_what_has_become_of_them() {
    let it = Fixture::new().await;
    push_named(&it, "a", &["1", "2", "3", "4"]).await;
    let batch = pop_queue(&it.messages, "mail", 3).await;
    settle(&it.messages, Settlement::dead(&batch.partitions[0], 1, "no")).await;
    let batch = pop_queue(&it.messages, "mail", 2).await;
    settle(&it.messages, Settlement::complete_through(&batch.partitions[0], 2)).await;

    let seen = it.messages.browse(&Browse::all().queue(queue("mail")), Page::default()).await.unwrap();

    assert_eq!(ids(&seen), ["4", "3", "2", "1"]);
    let states: Vec<MessageState> = seen.iter().map(|message| message.state).collect();
    assert_eq!(states, [Pending, Leased, Completed, Dead]);
    assert_eq!((seen[2].groups, seen[2].settled_by, seen[2].seq), (1, 1, 2));
}

#[tokio::test]
async fn messages_are_filtered_and_paged() {
    let it = Fixture::new().await;
    push_named(&it, "a", &["1", "2"]).await;
    it.age(3600).await;
    push_named(&it, "b", &["3", "4"]).await;
    push_to(&it.messages, "fax.task", "a", &["x"]).await;
    let mail = || Browse::all().queue(queue("mail"));
    let hour = it.now().await - Duration::from_secs(1800);
    let see = |which: Browse, page: Page| {
        let messages = it.messages.clone();
        async move { messages.browse(&which, page).await.unwrap() }
    };
    let all = Page::default();

    assert_eq!(ids(&see(mail(), all).await), ["4", "3", "2", "1"]);
    assert_eq!(ids(&see(mail(), Page::new(2, 1).unwrap()).await), ["3", "2"]);
    assert_eq!(ids(&see(mail().partition(partition("a")), all).await), ["2", "1"]);
    assert_eq!(ids(&see(mail().since(hour), all).await), ["4", "3"]);
    assert_eq!(ids(&see(mail().before(hour), all).await), ["2", "1"]);
    assert_eq!(see(Browse::all().namespace("fax"), all).await.len(), 1);
    assert_eq!(see(Browse::all().task("task"), all).await.len(), 1);
    assert_eq!(see(Browse::all(), all).await.len(), 5);
    complete(&it.messages, &pop(&it.messages, Pop::partition(queue("mail"), partition("a")).batch(1)).await.unwrap())
        .await;
    assert_eq!(ids(&see(mail().state(Completed), all).await), ["1"]);
    assert_eq!(ids(&see(mail().state(Pending), Page::new(2, 1).unwrap()).await), ["3", "2"]);
    assert!(matches!(it.messages.browse(&Browse::all().task("\0"), all).await, Err(MessagesError::Nul { .. })));
}

#[tokio::test]
async fn one_message_is_found_with_what_each_group_has_made_of_it() {
    let it = Fixture::new().await;
    let uid = push_named(&it, "a", &["1", "2"]).await;
    let of = |name: &str| Pop::queue(queue("mail")).group(group(name));
    complete(&it.messages, &pop(&it.messages, of("done")).await.unwrap()).await;
    let batch = pop(&it.messages, of("failed")).await.unwrap();
    settle(&it.messages, Settlement::fail(&batch.partitions[0], 1, "no")).await;
    pop(&it.messages, of("busy")).await.unwrap();
    let batch = pop(&it.messages, of("gave-up")).await.unwrap();
    settle(&it.messages, Settlement::dead(&batch.partitions[0], 1, "broken")).await;

    let found = it.messages.find(uid, "1").await.unwrap().unwrap();

    assert_eq!(found.payload.unwrap().as_bytes(), b"1");
    let views: Vec<_> = found
        .groups
        .iter()
        .map(|view| (view.group.as_str(), view.state, view.failures, view.error.as_deref()))
        .collect();
    let views_expected = [
        ("busy", Leased, 0, None),
        ("done", Completed, 0, None),
        ("failed", Pending, 1, None),
        ("gave-up", Dead, 0, Some("broken")),
    ];
    assert_eq!(views, views_expected);
    assert_eq!((found.message.state, found.message.settled_by), (Dead, 2));
    assert!(it.messages.find(uid, "nobody").await.unwrap().is_none());
    assert!(it.messages.find(PartitionUid(Uuid::nil()), "1").await.unwrap().is_none());
}

#[tokio::test]
async fn a_deleted_message_is_nobodys_and_its_bytes_are_erased() {
    let it = Fixture::new().await;
    let uid = push_named(&it, "a", &["1", "2", "3"]).await;

    assert!(it.messages.delete_message(uid, "2").await.unwrap());
    assert!(!it.messages.delete_message(uid, "2").await.unwrap());

    assert!(it.messages.find(uid, "2").await.unwrap().is_none());
    let seen = it.messages.browse(&Browse::all(), Page::default()).await.unwrap();
    assert_eq!(ids(&seen), ["3", "1"]);
    let batch = pop_queue(&it.messages, "mail", 9).await;
    assert_eq!(texts(&batch), ["1", "3"]);
    assert_eq!(it.count("reveille.segment where payloads[2] = ''").await, 1);
    complete(&it.messages, &batch).await;
    assert_eq!(it.cursor().await.committed, 3);
}

#[tokio::test]
async fn when_all_that_waits_was_deleted_nothing_is_popped() {
    let it = Fixture::new().await;
    let uid = push_named(&it, "a", &["1", "2"]).await;
    it.messages.delete_message(uid, "1").await.unwrap();
    it.messages.delete_message(uid, "2").await.unwrap();

    none(&it.messages, "mail").await;
    push_named(&it, "a", &["3"]).await;

    assert_eq!(texts(&pop_queue(&it.messages, "mail", 9).await), ["3"]);
}

#[tokio::test]
async fn traces_are_found_by_message_and_by_name() {
    let it = Fixture::new().await;
    let uid = push_named(&it, "a", &["1", "2"]).await;
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let one =
        NewTrace::new(uid, "1", "{\"step\":1}".to_owned()).names(names(&["journey", "x"])).group(group("billing"));
    let two = NewTrace::new(uid, "2", "{}".to_owned()).names(names(&["journey"])).event_type("error");

    assert!(it.messages.trace(one).await.unwrap().is_some());
    assert!(it.messages.trace(two).await.unwrap().is_some());
    let nowhere = NewTrace::new(PartitionUid(Uuid::nil()), "1", "{}".to_owned());
    assert!(it.messages.trace(nowhere).await.unwrap().is_none());

    let (traces, total) = it.messages.traces(uid, "1", Page::default()).await.unwrap();
    assert_eq!((traces.len(), total), (1, 1));
    assert_eq!((traces[0].event_type.as_str(), traces[0].group.as_deref()), ("info", Some("billing")));
    assert_eq!((traces[0].body.as_bytes(), traces[0].queue.as_str()), (&b"{\"step\":1}"[..], "mail"));
    let (journey, total) = it.messages.traces_named("journey", Page::new(1, 1).unwrap()).await.unwrap();
    assert_eq!((journey.len(), total, journey[0].transaction_id.as_str()), (1, 2, "2"));
    let (listed, total) = it.messages.trace_names(Page::default()).await.unwrap();
    let counts: Vec<_> = listed.iter().map(|name| (name.name.as_str(), name.traces, name.messages)).collect();
    assert_eq!((counts, total), (vec![("journey", 2, 2), ("x", 1, 1)], 2));
}

#[tokio::test]
async fn a_page_of_traces_is_bounded_by_bytes_and_the_next_one_goes_on() {
    let it = Fixture::new().await;
    let uid = push_named(&it, "a", &["1"]).await;
    for size in [6, 6, 6, 1] {
        let body = "x".repeat(size << 20);
        it.messages.trace(NewTrace::new(uid, "1", body).names(["trip".to_owned()])).await.unwrap().unwrap();
    }
    let messages = &it.messages;
    let page = |offset| Page::new(100, offset).unwrap();
    let sizes = |(traces, total): (Vec<Trace>, i64)| {
        (traces.iter().map(|trace| trace.body.len() >> 20).collect::<Vec<_>>(), total)
    };

    for offset in [0, 2] {
        let of_message = sizes(messages.traces(uid, "1", page(offset)).await.unwrap());
        let named = sizes(messages.traces_named("trip", page(offset)).await.unwrap());
        let expected = if offset == 0 { vec![6, 6] } else { vec![6, 1] };
        assert_eq!([of_message, named], [(expected.clone(), 4), (expected, 4)]);
    }
}

#[tokio::test]
async fn traces_that_cannot_be_kept_are_refused_in_words() {
    let it = Fixture::new().await;
    let uid = push_named(&it, "a", &["1"]).await;
    let new = || NewTrace::new(uid, "1", "{}".to_owned());

    let many = it.messages.trace(new().names((0..101).map(|n| n.to_string()))).await.unwrap_err();
    let nul = it.messages.trace(new().names(["a\0".to_owned()])).await.unwrap_err();

    assert!(many.to_string().starts_with("the names of a trace must be at most 100"));
    assert_eq!(nul.to_string(), "the name of a trace contains a NUL character");
}
