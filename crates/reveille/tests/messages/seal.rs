//! Encrypted queues: payloads are nowhere in the clear, and every node with the key opens them.

use reveille::messages::{Messages, MessagesOptions, Pop, PushItem, QueueOptions};

use crate::support::{Fixture, item, queue, soon};

const OLD: [u8; 32] = [1; 32];
const NEW: [u8; 32] = [2; 32];

fn keys(keys: &[(i32, [u8; 32])]) -> MessagesOptions {
    keys.iter().fold(MessagesOptions::default(), |options, (id, key)| options.encryption_key(*id, *key))
}

async fn encrypt(messages: &Messages, name: &str) {
    soon(messages.configure(&queue(name), &QueueOptions::default().encrypted(true))).await.unwrap();
}

async fn pop_texts(messages: &Messages, name: &str) -> Vec<String> {
    let batch = soon(messages.pop(Pop::queue(queue(name)).batch(100).auto_ack())).await.unwrap().unwrap();
    batch.messages().map(|message| String::from_utf8(message.payload.as_bytes().to_vec()).unwrap()).collect()
}

/// How many rows hold the text in the clear, anywhere.
async fn in_the_clear(fixture: &Fixture, text: &str) -> i64 {
    let found = format!(
        "(select s::text from reveille.segment s union all select o::text from reveille.outbox o) all_rows (row)
         where position('{}' in row) > 0",
        text.bytes().fold(String::new(), |hex, byte| hex + &format!("{byte:02x}"))
    );
    fixture.count(&found).await
}

#[tokio::test]
async fn payloads_are_sealed_by_the_newest_key_and_opened_by_the_one_that_sealed_them() {
    let fixture = Fixture::with(keys(&[(1, OLD)])).await;
    let both = fixture.node_at(&fixture.db.url(), keys(&[(1, OLD), (2, NEW)])).await;
    encrypt(&fixture.messages, "mail").await;
    soon(fixture.messages.push_one(item("mail", "a", "old secret"))).await.unwrap();
    soon(both.push(vec![item("mail", "a", "new secret"), item("plain", "a", "open")])).await;

    let row = fixture.client().await;
    let sealed_with = row
        .query_one("select array_agg(key_id order by partition, last_seq) from reveille.segment", &[])
        .await
        .unwrap();

    assert_eq!(sealed_with.get::<_, Vec<Option<i32>>>(0), [Some(1), Some(2), None]);
    assert_eq!(in_the_clear(&fixture, "secret").await, 0);
    assert_eq!(in_the_clear(&fixture, "open").await, 1);
    assert_eq!(pop_texts(&both, "mail").await, ["old secret", "new secret"]);
}

#[tokio::test]
async fn without_a_key_pushes_to_an_encrypted_queue_are_refused_alone() {
    let fixture = Fixture::new().await;
    encrypt(&fixture.messages, "mail").await;

    let answers = soon(fixture.messages.push(vec![item("mail", "a", "secret"), item("plain", "a", "open")])).await;

    assert_eq!(
        answers[0].as_ref().unwrap_err().to_string(),
        "the queue \"mail\" is encrypted, and no encryption key is loaded"
    );
    assert!(answers[1].is_ok());
    assert_eq!(in_the_clear(&fixture, "secret").await, 0);
}

#[tokio::test]
async fn a_node_that_does_not_know_of_the_encryption_yet_stores_nothing_in_the_clear() {
    let fixture = Fixture::with(keys(&[(1, OLD)])).await;
    let unaware = fixture.node_at(&fixture.db.url(), keys(&[(1, OLD)])).await;
    let keyless = fixture.node().await;
    for node in [&unaware, &keyless] {
        soon(node.push_one(item("mail", "a", "before"))).await.unwrap();
    }
    encrypt(&fixture.messages, "mail").await;

    soon(unaware.push_one(item("mail", "a", "secret one"))).await.unwrap();
    let refused = soon(keyless.push_one(item("mail", "a", "secret two"))).await;

    assert!(refused.is_err());
    assert_eq!(in_the_clear(&fixture, "secret").await, 0);
    assert_eq!(pop_texts(&unaware, "mail").await, ["before", "before", "secret one"]);
}

#[tokio::test]
async fn a_repeat_in_a_call_gets_the_refusal_of_the_item_it_repeats() {
    let fixture = Fixture::new().await;
    let other = fixture.node().await;
    soon(fixture.messages.push_one(item("mail", "a", "before"))).await.unwrap();
    // The first attempt finds the repeat, and the second one that there is no key.
    encrypt(&other, "mail").await;

    let twice = vec![item("mail", "a", "one").transaction_id("x"), item("mail", "a", "two").transaction_id("x")];
    let answers = soon(fixture.messages.push(twice)).await;

    let refusals: Vec<String> = answers.into_iter().map(|answer| answer.unwrap_err().to_string()).collect();
    assert_eq!(refusals, ["the queue \"mail\" is encrypted, and no encryption key is loaded"; 2]);
}

#[tokio::test]
async fn sql_cannot_push_to_an_encrypted_queue_and_the_library_seals_what_it_pushes_in_a_transaction() {
    let fixture = Fixture::with(keys(&[(1, OLD)])).await;
    encrypt(&fixture.messages, "mail").await;
    let client = fixture.client().await;

    let refused = client.batch_execute("select reveille.push('mail', 'secret')").await.unwrap_err();
    let sealed = vec![PushItem::new(queue("mail"), "secret one"), PushItem::new(queue("mail"), "secret two")];
    fixture.messages.push_in(&client, sealed).await.unwrap();
    let waiting = in_the_clear(&fixture, "secret").await;

    assert_eq!(
        refused.as_db_error().unwrap().message(),
        "the queue \"mail\" is encrypted: push to it through a program that has the key"
    );
    assert_eq!(waiting, 0);
    assert_eq!(pop_texts(&fixture.messages, "mail").await, ["secret one", "secret two"]);
    assert_eq!(in_the_clear(&fixture, "secret").await, 0);
}
