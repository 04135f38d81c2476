//! Pushes in a caller's transaction: part of it, never in the way of others, never lost or doubled.

use std::collections::BTreeMap;

use futures_util::stream::{StreamExt, poll_fn};
use reveille::messages::{GroupName, Messages, MessagesError, Pop, PushItem, PushOutcome, QueueOptions, Switch};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_postgres::{AsyncMessage, NoTls};

use crate::support::{Fixture, item, partition, push, queue, seq, soon, until_blocked};

/// Everything there is for a group, as text, in the order of delivery.
async fn drain(messages: &Messages, group: &str) -> Vec<String> {
    let mut all = Vec::new();
    loop {
        let pop = Pop::queue(queue("mail")).group(GroupName::new(group).unwrap()).batch(100).auto_ack();
        let Some(batch) = soon(messages.pop(pop)).await.unwrap() else { return all };
        all.extend(batch.messages().map(|message| String::from_utf8(message.payload.as_bytes().to_vec()).unwrap()));
    }
}

#[tokio::test]
async fn a_foreign_transaction_that_stays_open_keeps_nobody_waiting_and_is_seen_by_every_group_after_its_commit() {
    let fixture = Fixture::new().await;
    let messages = &fixture.messages;
    push(messages, "mail", "first").await;
    assert_eq!(drain(messages, "one").await, ["first"]);
    let foreign = fixture.client().await;
    foreign
        .batch_execute("begin; select reveille.push('mail', 'foreign'); select reveille.push('new', 'x')")
        .await
        .unwrap();

    push(messages, "mail", "second").await;
    push(messages, "new", "y").await;
    let meanwhile = drain(messages, "one").await;
    foreign.batch_execute("commit").await.unwrap();
    let after = drain(messages, "one").await;

    assert_eq!(meanwhile, ["second"]);
    assert_eq!(after, ["foreign"]);
    assert_eq!(drain(messages, "two").await, ["first", "second", "foreign"]);
}

#[tokio::test]
async fn a_push_begun_after_a_foreign_commit_comes_after_it() {
    let fixture = Fixture::new().await;
    push(&fixture.messages, "mail", "first").await;
    let foreign = fixture.client().await;

    foreign.batch_execute("select reveille.push('mail', 'foreign')").await.unwrap();
    let pushed = push(&fixture.messages, "mail", "second").await;

    assert_eq!(seq(&pushed), 3);
    assert_eq!(fixture.texts("mail", "Default").await, ["first", "foreign", "second"]);
}

#[tokio::test]
async fn rows_of_other_partitions_and_queues_stay_out_of_the_way() {
    let fixture = Fixture::new().await;
    push(&fixture.messages, "mail", "first").await;
    let foreign = fixture.client().await;
    let many = "select count(reveille.push('other', 'x')), count(reveille.push('mail', 'y', 'p' || n % 7))
         from generate_series(1, 3000) n";
    foreign.query(many, &[]).await.unwrap();

    let pushed = push(&fixture.messages, "mail", "second").await;

    assert_eq!(seq(&pushed), 2);
    assert_eq!(fixture.count("reveille.outbox where queue = 'other'").await, 3000);
    assert_eq!(fixture.count("reveille.outbox where queue = 'mail'").await, 0);
    assert_eq!(fixture.texts("mail", "p3").await.len(), 429);
}

#[tokio::test(flavor = "multi_thread")]
async fn sql_pushes_mixed_with_server_pushes_reach_every_group_once_and_in_one_order() {
    let fixture = Fixture::new().await;
    let mut producers = JoinSet::new();
    for producer in 0..3 {
        let client = fixture.client().await;
        producers.spawn(async move {
            for n in 0..40 {
                let end = if n % 5 == 4 { "rollback" } else { "commit" };
                let text = format!("sql{producer} {n:03}");
                let both = format!(
                    "begin; select reveille.push('mail', '{text} a'); select reveille.push('mail', '{text} b'); {end}"
                );
                client.batch_execute(&both).await.unwrap();
            }
        });
    }
    for producer in 0..3 {
        let messages = fixture.node().await;
        producers.spawn(async move {
            for n in 0..80 {
                push(&messages, "mail", &format!("node{producer} {n:03}")).await;
            }
        });
    }
    let early = drain(&fixture.messages, "one").await;
    soon(producers.join_all()).await;

    let mut one = early;
    one.extend(drain(&fixture.messages, "one").await);
    let two = drain(&fixture.messages, "two").await;

    assert_eq!(one, two, "both groups see the same sequence");
    assert_eq!(one.len(), 3 * 32 * 2 + 3 * 80);
    let mut by_producer: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for text in &one {
        by_producer.entry(text.split(' ').next().unwrap()).or_default().push(text);
    }
    for (producer, texts) in by_producer {
        assert!(texts.is_sorted(), "{producer} pushed one after the other: {texts:?}");
    }
    assert_eq!(fixture.count("reveille.outbox").await, 0);
}

#[tokio::test]
async fn two_who_move_at_once_move_each_message_once() {
    let fixture = Fixture::new().await;
    let nodes = [fixture.messages.clone(), fixture.node().await, fixture.node().await];
    push(&fixture.messages, "mail", "first").await;
    let foreign = fixture.client().await;
    foreign.query("select reveille.push('mail', 'f' || n) from generate_series(1, 50) n", &[]).await.unwrap();
    let holder = fixture.client().await;
    holder.batch_execute("begin; select from reveille.partition_row for update").await.unwrap();
    let mut pushes = JoinSet::new();
    for (n, node) in nodes.into_iter().enumerate() {
        pushes.spawn(async move { push(&node, "mail", &format!("s{n}")).await });
    }
    until_blocked(&fixture.client().await, 3).await;

    holder.batch_execute("commit").await.unwrap();
    soon(pushes.join_all()).await;

    let texts = fixture.texts("mail", "Default").await;
    let mut expected = vec!["first".to_owned()];
    expected.extend((1..=50).map(|n| format!("f{n}")));
    assert_eq!(texts[..51], expected);
    assert_eq!(texts.len(), 54);
}

#[tokio::test]
async fn a_transaction_id_is_one_whichever_way_it_comes() {
    let fixture = Fixture::new().await;
    let named = |payload: &str, id: &str| item("mail", "Default", payload).transaction_id(id);
    soon(fixture.messages.push_one(named("server", "x"))).await.unwrap();
    let foreign = fixture.client().await;
    let twice = "select reveille.push('mail', 'late', transaction_id => 'x');
         select reveille.push('mail', 'one', transaction_id => 'y');
         select reveille.push('mail', 'two', transaction_id => 'y');
         select reveille.push('mail', 'three');";
    foreign.batch_execute(twice).await.unwrap();

    let again = soon(fixture.messages.push_one(named("four", "y"))).await.unwrap();

    assert!(again.is_duplicate());
    assert_eq!(fixture.texts("mail", "Default").await, ["server", "one", "three"]);
}

#[tokio::test]
async fn a_transaction_notifies_once_for_each_queue_and_one_that_is_rolled_back_not_at_all() {
    let fixture = Fixture::new().await;
    push(&fixture.messages, "mail", "first").await;
    push(&fixture.messages, "quiet", "first").await;
    soon(fixture.messages.configure(&queue("quiet"), &QueueOptions::default().quiet(true))).await.unwrap();
    let (listener, mut connection) = tokio_postgres::connect(&fixture.db.url(), NoTls).await.unwrap();
    let (sent, mut received) = mpsc::channel(100);
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let mut stream = poll_fn(move |context| connection.poll_message(context));
        while let Some(Ok(message)) = stream.next().await {
            if let AsyncMessage::Notification(note) = message {
                sent.send(note.payload().to_owned()).await.unwrap();
            }
        }
    });
    let channel = fixture.database.hint_channel();
    listener.batch_execute(&format!("listen {channel}")).await.unwrap();
    let foreign = fixture.client().await;

    foreign.batch_execute("begin; select reveille.push('mail', 'a'); rollback").await.unwrap();
    foreign.batch_execute("select reveille.push('quiet', 'a')").await.unwrap();
    foreign
        .batch_execute("begin; select reveille.push('mail', 'a'), reveille.push('mail', 'b'); commit")
        .await
        .unwrap();
    foreign.batch_execute("select reveille.push('unknown', 'a')").await.unwrap();
    foreign.batch_execute(&format!("notify {channel}, 'end'")).await.unwrap();

    let mut all = Vec::new();
    while all.last().is_none_or(|last| last != "end") {
        all.push(soon(received.recv()).await.unwrap());
    }
    assert_eq!(all, ["hint\nmessages 1", "hint\nmessages", "end"]);
    assert_eq!(fixture.count("reveille.outbox where queue = 'mail'").await, 2);
}

#[tokio::test]
async fn every_kind_of_payload_is_kept_as_it_is_written() {
    let fixture = Fixture::new().await;
    let foreign = fixture.client().await;
    let kinds = r#"select reveille.push('mail', '{"b":1,  "a":2}');
         select reveille.push('mail', json '{"b":1,  "a":2}');
         select reveille.push('mail', jsonb '{"b":1,  "a":2}');
         select reveille.push('mail', '\x00ff'::bytea);
         select reveille.push_many('mail', array['1', '2'], transaction_ids => array['t1', null]);
         select reveille.push_many('mail', array[json '3', json '{"x": 4}']);
         select reveille.push_many('mail', '{}'::text[]);"#;
    foreign.batch_execute(kinds).await.unwrap();
    push(&fixture.messages, "mail", "last").await;

    let log = fixture.log("mail", "Default").await;
    let payloads: Vec<&[u8]> = log.iter().map(|(_, _, payload)| payload.as_slice()).collect();
    let expected: [&[u8]; 9] = [
        br#"{"b":1,  "a":2}"#,
        br#"{"b":1,  "a":2}"#,
        br#"{"a": 2, "b": 1}"#,
        &[0, 255],
        b"1",
        b"2",
        b"3",
        br#"{"x": 4}"#,
        b"last",
    ];
    assert_eq!(payloads, expected);
    assert_eq!(log[4].1, "t1");
}

#[tokio::test]
async fn what_cannot_be_pushed_is_refused_in_words() {
    let fixture = Fixture::new().await;
    let foreign = fixture.client().await;
    let refused = [
        ("reveille.push('', 'x')", "the queue's name is empty"),
        ("reveille.push(null, 'x')", "the queue's name is empty"),
        ("reveille.push('mail', 'x', '')", "the partition's name is empty"),
        ("reveille.push(repeat('x', 513), 'x')", "the queue's name is longer than 512 bytes"),
        ("reveille.push('mail', null::text)", "the payload is null: a JSON null is written 'null'"),
        (
            "reveille.push('mail', 'x', transaction_id => repeat('x', 1025))",
            "the transaction id must be at most 1024 bytes long",
        ),
        ("reveille.push_many('mail', array['1', null])", "the payload is null: a JSON null is written 'null'"),
        (
            "reveille.push_many('mail', array['1'], transaction_ids => array['a', 'b'])",
            "there are 1 payloads and 2 transaction ids",
        ),
        (
            "reveille.push('mail', repeat('x', 16777217))",
            "the payload has 16777217 bytes and may have at most 16777216",
        ),
        (
            "reveille.push_many('mail', array['1', repeat('x', 16777217)])",
            "the payload has 16777217 bytes and may have at most 16777216",
        ),
    ];
    for (call, words) in refused {
        let error = foreign.batch_execute(&format!("select {call}")).await.unwrap_err();
        assert_eq!(error.as_db_error().unwrap().message(), words, "{call}");
    }
    assert_eq!(fixture.count("reveille.outbox").await, 0);
    foreign.batch_execute("select reveille.push('mail', repeat('x', 16777216))").await.unwrap();
    assert_eq!(fixture.count("reveille.outbox").await, 1);
}

#[tokio::test]
async fn the_size_of_a_queue_is_judged_by_pushes_of_servers_alone() {
    let fixture = Fixture::new().await;
    let (messages, name) = (&fixture.messages, queue("mail"));
    messages.configure(&name, &QueueOptions::default().max_size(1)).await.unwrap();
    push(messages, "mail", "first").await;
    assert_eq!(drain(messages, "slow").await, ["first"]);
    push(messages, "mail", "second").await;

    let refused = messages.push_one(PushItem::new(name, "third".to_owned())).await;
    fixture.client().await.batch_execute("select reveille.push('mail', 'by SQL')").await.unwrap();

    assert!(matches!(refused, Err(MessagesError::QueueFull { .. })), "{refused:?}");
    assert_eq!(drain(messages, "slow").await, ["second", "by SQL"]);
}

#[tokio::test]
async fn the_library_and_sql_remember_a_transaction_id_under_the_same_key() {
    let fixture = Fixture::new().await;
    let uuid = uuid::Uuid::now_v7();
    let ids = [
        uuid.to_string(),
        uuid.to_string().to_uppercase(),
        "order 7".into(),
        String::new(),
        "é🦆".into(),
        "0190c1a0-0000-8000-8000-000000000000".into(),
        "0190c1a0-0000-F000-8000-000000000000".into(),
    ];
    let items = ids.iter().map(|id| item("mail", "a", "x").transaction_id(id)).collect();
    soon(fixture.messages.push(items)).await;

    let client = fixture.client().await;
    let known = "select count(*) from unnest($1::text[]) as asked (name)
        join (select key from reveille.dedup union all select key_high from reveille.partition_row) as seen
          on seen.key = reveille.dedup_key(asked.name)";
    let row = client.query_one(known, &[&ids.to_vec()]).await.unwrap();

    assert_eq!(row.get::<_, i64>(0), 7);
}

#[tokio::test]
async fn a_push_in_the_callers_transaction_is_part_of_it() {
    let fixture = Fixture::new().await;
    let mut client = fixture.client().await;
    client.batch_execute("create table orders (id int)").await.unwrap();

    let undone = client.transaction().await.unwrap();
    undone.execute("insert into orders values (1)", &[]).await.unwrap();
    fixture.messages.push_in(&undone, vec![item("mail", "a", "undone")]).await.unwrap();
    undone.rollback().await.unwrap();
    let kept = client.transaction().await.unwrap();
    kept.execute("insert into orders values (2)", &[]).await.unwrap();
    let ids = fixture.messages.push_in(&kept, vec![item("mail", "a", "kept"), item("mail", "b", "too")]).await.unwrap();
    kept.commit().await.unwrap();
    fixture.messages.pushed_in(&[queue("mail")]).await.unwrap();

    assert_eq!(drain(&fixture.messages, "g").await.len(), 2);
    assert_eq!(fixture.texts("mail", "a").await, ["kept"]);
    assert_eq!(ids.len(), 2);
    assert_eq!(fixture.count("orders").await, 1);
}

#[tokio::test]
async fn an_item_that_cannot_be_stored_refuses_the_call_and_leaves_the_callers_transaction_alone() {
    let fixture = Fixture::new().await;
    let mut client = fixture.client().await;
    let transaction = client.transaction().await.unwrap();

    let refused = fixture.messages.push_in(&transaction, vec![item("mail", "a", "x").transaction_id("\0")]).await;

    assert_eq!(refused.unwrap_err().to_string(), "the transaction id contains a NUL character");
    fixture.messages.push_in(&transaction, vec![item("mail", "a", "y")]).await.unwrap();
    transaction.commit().await.unwrap();
}

#[cfg(feature = "sqlx")]
#[tokio::test]
async fn a_push_in_a_transaction_of_sqlx_is_part_of_it() {
    use sqlx::Connection;
    let fixture = Fixture::new().await;
    let url: std::collections::HashMap<String, String> = fixture
        .db
        .url()
        .split(' ')
        .filter_map(|pair| pair.split_once('='))
        .map(|(k, v)| (k.into(), v.trim_matches('\'').into()))
        .collect();
    let options = sqlx::postgres::PgConnectOptions::new()
        .socket(&url["host"])
        .port(url["port"].parse().unwrap())
        .username(&url["user"])
        .database(fixture.db.name());
    let mut connection = sqlx::PgConnection::connect_with(&options).await.unwrap();

    let mut undone = connection.begin().await.unwrap();
    fixture.messages.push_in_sqlx(&mut *undone, vec![item("mail", "a", "undone")]).await.unwrap();
    undone.rollback().await.unwrap();
    let mut kept = connection.begin().await.unwrap();
    let traced = item("mail", "a", "kept").transaction_id("t").trace_id(uuid::Uuid::now_v7()).producer("p");
    fixture.messages.push_in_sqlx(&mut *kept, vec![traced, item("mail", "a", "plain")]).await.unwrap();
    kept.commit().await.unwrap();

    assert_eq!(drain(&fixture.messages, "g").await, ["kept", "plain"]);
}

#[tokio::test]
async fn while_pushes_are_paused_they_are_kept_and_afterwards_come_in_order() {
    let fixture = Fixture::new().await;
    let messages = &fixture.messages;
    push(messages, "mail", "first").await;
    soon(messages.turn(Switch::PushPaused, true)).await.unwrap();

    let kept = soon(messages.push(vec![item("mail", "Default", "second"), item("new", "a", "x")])).await;
    fixture.client().await.batch_execute("select reveille.push('mail', 'foreign')").await.unwrap();
    let paused = drain(messages, "g").await;
    soon(messages.turn(Switch::PushPaused, false)).await.unwrap();
    push(messages, "mail", "third").await;

    assert!(kept.iter().all(|answer| answer.as_ref().unwrap().outcome == PushOutcome::Buffered));
    assert_eq!(paused, ["first"]);
    assert_eq!(drain(messages, "g").await, ["second", "foreign", "third"]);
    let pop = Pop::partition(queue("new"), partition("a")).auto_ack();
    assert_eq!(soon(messages.pop(pop)).await.unwrap().unwrap().len(), 1);
}

#[tokio::test]
async fn a_large_outbox_is_cut_into_segments() {
    let fixture = Fixture::new().await;
    let foreign = fixture.client().await;
    foreign.query("select count(reveille.push('mail', n::text)) from generate_series(1, 4500) n", &[]).await.unwrap();
    foreign
        .query("select count(reveille.push('mail', repeat('x', 600000))) from generate_series(1, 3) n", &[])
        .await
        .unwrap();

    let pushed = soon(fixture.messages.push_one(PushItem::new(queue("mail"), "last"))).await.unwrap();

    assert_eq!(seq(&pushed), 4504);
    assert_eq!(fixture.texts("mail", "Default").await[..4500], (1..=4500).map(|n| n.to_string()).collect::<Vec<_>>());
    assert_eq!(fixture.count("reveille.segment where n > 256 or (bytes > 1048576 + 600000)").await, 0);
}
