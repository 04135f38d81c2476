//! The promises of a push when all goes well: order, answers, bytes.

use reveille::messages::{MessagesError, MessagesOptions, Payload, PushItem, PushOutcome};

use crate::support::{Fixture, item, push, queue, seqs, soon};

#[tokio::test]
async fn what_is_pushed_is_stored_in_the_order_of_the_call() {
    let fixture = Fixture::new().await;

    let answers = soon(fixture.messages.push((0..600).map(|n| item("mail", "a", &n.to_string())).collect())).await;

    assert_eq!(seqs(&answers), (1..=600).collect::<Vec<i64>>());
    assert_eq!(fixture.texts("mail", "a").await, (0..600).map(|n| n.to_string()).collect::<Vec<_>>());
    assert_eq!(fixture.count("reveille.segment").await, 3, "cut at 256 messages");
}

#[tokio::test]
async fn answers_come_in_the_order_of_the_call_whatever_the_partitions() {
    let fixture = Fixture::new().await;
    let items: Vec<PushItem> = (0..300).map(|n| item("mail", &format!("p{}", n * 7 % 13), &n.to_string())).collect();

    let answers = soon(fixture.messages.push(items)).await;

    for (n, answer) in answers.iter().enumerate() {
        let pushed = answer.as_ref().unwrap();
        let read = "select s.payloads[i.place] from reveille.segment s, unnest(s.ids) with ordinality i (id, place)
             where i.id = $1";
        let row = fixture.client().await.query_one(read, &[&pushed.id.0]).await.unwrap();
        assert_eq!(row.get::<_, Vec<u8>>(0), n.to_string().into_bytes());
        if n > 20 {
            break;
        }
    }
    for p in 0..13 {
        let expected: Vec<String> = (0..300).filter(|n| n * 7 % 13 == p).map(|n: i32| n.to_string()).collect();
        assert_eq!(fixture.texts("mail", &format!("p{p}")).await, expected);
    }
}

#[tokio::test]
async fn callers_at_the_same_time_share_a_flush() {
    let fixture = Fixture::new().await;
    push(&fixture.messages, "mail", "first").await;
    let holder = fixture.client().await;
    holder.batch_execute("begin; select from reveille.partition_row for update").await.unwrap();
    let mut tasks = tokio::task::JoinSet::new();
    for n in 0..64 {
        let messages = fixture.messages.clone();
        tasks.spawn(async move { messages.push_one(PushItem::new(queue("mail"), n.to_string())).await.unwrap() });
    }
    crate::support::until_blocked(&fixture.client().await, 1).await;

    holder.batch_execute("commit").await.unwrap();
    soon(tasks.join_all()).await;

    let segments = fixture.count("reveille.segment").await;
    assert!(segments <= 4, "64 pushes made {segments} segments");
    assert_eq!(fixture.log("mail", "Default").await.len(), 65);
}

#[tokio::test]
async fn a_message_without_a_transaction_id_is_called_by_its_own_id() {
    let fixture = Fixture::new().await;

    let pushed = push(&fixture.messages, "mail", "hello").await;

    assert_eq!(pushed.transaction_id(), pushed.id.to_string());
    assert_eq!(fixture.log("mail", "Default").await[0].1, pushed.id.to_string());
}

#[tokio::test]
async fn trace_ids_and_producers_are_kept() {
    let fixture = Fixture::new().await;
    let trace = uuid::Uuid::now_v7();

    let traced = item("mail", "a", "x").trace_id(trace).producer("alice");
    soon(fixture.messages.push(vec![item("mail", "a", "w"), traced])).await;

    let row = fixture.client().await;
    let row = row.query_one("select trace_ids, producers from reveille.segment", &[]).await.unwrap();
    assert_eq!(row.get::<_, Vec<Option<uuid::Uuid>>>(0), [None, Some(trace)]);
    assert_eq!(row.get::<_, Vec<Option<String>>>(1), [None, Some("alice".to_owned())]);
}

#[tokio::test]
async fn large_payloads_are_cut_into_segments_and_sixteen_mebibytes_fit() {
    let fixture = Fixture::new().await;
    let large = vec![7_u8; 16 * 1024 * 1024];
    let items = vec![
        item("mail", "a", &"x".repeat(700_000)),
        item("mail", "a", &"y".repeat(700_000)),
        PushItem::new(queue("mail"), large.clone()).partition("a".parse().unwrap()),
    ];

    let answers = soon(fixture.messages.push(items)).await;

    assert_eq!(seqs(&answers), [1, 2, 3]);
    assert_eq!(fixture.count("reveille.segment").await, 3);
    assert!(fixture.log("mail", "a").await[2].2 == large);
}

#[tokio::test]
async fn a_payload_over_the_limit_is_refused_alone() {
    let fixture = Fixture::with(MessagesOptions::default().payload_bytes_max(10)).await;

    let items = vec![item("mail", "a", "1234567890"), item("mail", "a", "12345678901"), item("mail", "a", "")];
    let answers = soon(fixture.messages.push(items)).await;

    assert_eq!(answers[1].as_ref().unwrap_err().to_string(), "the payload has 11 bytes, more than the 10 allowed");
    assert_eq!(fixture.texts("mail", "a").await, ["1234567890", ""]);
}

#[tokio::test]
async fn a_nul_in_a_transaction_id_or_a_producer_is_refused_alone() {
    let fixture = Fixture::new().await;

    let items = vec![
        item("mail", "a", "one"),
        item("mail", "a", "two").transaction_id("a\0b"),
        item("mail", "a", "three").producer("\0"),
        item("mail", "a", "four").transaction_id("x".repeat(1025)),
        item("mail", "a", "five").transaction_id("x".repeat(1024)),
    ];
    let answers = soon(fixture.messages.push(items)).await;

    let refused: Vec<String> =
        answers.iter().filter_map(|answer| answer.as_ref().err()).map(ToString::to_string).collect();
    assert_eq!(
        refused,
        [
            "the transaction id contains a NUL character",
            "the producer contains a NUL character",
            "the transaction id must be at most 1024 bytes long, not 1025 bytes long",
        ]
    );
    assert_eq!(fixture.texts("mail", "a").await, ["one", "five"]);
}

#[tokio::test]
async fn payloads_come_back_byte_for_byte_whatever_they_are() {
    let fixture = Fixture::new().await;
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let payloads: Vec<Vec<u8>> = vec![
        deep.into_bytes(),
        b"1e131071".to_vec(),
        br#"{"a":1,"a":2, "b" : 1.000 }"#.to_vec(),
        br#""\u0000 \ud800""#.to_vec(),
        vec![0, 255, 254, 0, 192, 128],
        b"".to_vec(),
        b" null\n".to_vec(),
    ];
    let items = payloads.iter().map(|bytes| PushItem::new(queue("mail"), Payload::new(bytes.clone()))).collect();

    soon(fixture.messages.push(items)).await;

    let stored: Vec<Vec<u8>> =
        fixture.log("mail", "Default").await.into_iter().map(|(_, _, payload)| payload).collect();
    assert!(stored == payloads);
}

#[tokio::test]
async fn hostile_names_are_names() {
    let fixture = Fixture::new().await;
    let names = ["a/b", "\"; drop table reveille.queue --", "it's", "🦆", " ", "*", "a\nb", "{schema}", "{}", "a,b"];
    let long = "é".repeat(256);

    for name in names.into_iter().chain([long.as_str()]) {
        let named = item(name, name, name).transaction_id(name).producer(name);
        let pushed = soon(fixture.messages.push_one(named)).await.unwrap();
        assert_eq!(pushed.transaction_id(), name);
        let log = fixture.log(name, name).await;
        assert_eq!(log, [(1, name.to_owned(), name.as_bytes().to_vec())]);
    }
}

#[tokio::test]
async fn an_item_that_postgresql_refuses_fails_alone() {
    let fixture = Fixture::new().await;
    push(&fixture.messages, "mail", "first").await;
    // PostgreSQL refuses nothing that we send, but an operator's own check on the table may.
    let check = "create function refuse_bad() returns trigger language plpgsql as $$ begin
           if 'bad' = any (new.transaction_ids) then raise exception 'bad' using errcode = '22000'; end if;
           return new;
         end $$;
         create trigger refuse_bad before insert on reveille.segment for each row execute function refuse_bad();";
    fixture.client().await.batch_execute(check).await.unwrap();
    let items = (0..20).map(|n| {
        item("mail", &format!("p{}", n % 3), &n.to_string()).transaction_id(if n == 11 {
            "bad".into()
        } else {
            format!("t{n}")
        })
    });

    let answers = soon(fixture.messages.push(items.collect())).await;

    for (n, answer) in answers.iter().enumerate() {
        match answer {
            Ok(pushed) => assert!(n != 11 && matches!(pushed.outcome, PushOutcome::Stored { .. })),
            Err(error) => assert!(n == 11 && matches!(error, MessagesError::Database(_)), "{n}: {error}"),
        }
    }
    let mut all = Vec::new();
    for p in 0..3 {
        let texts = fixture.texts("mail", &format!("p{p}")).await;
        let numbers: Vec<u32> = texts.iter().map(|text| text.parse().unwrap()).collect();
        assert!(numbers.is_sorted(), "{numbers:?}");
        all.extend(numbers);
    }
    all.sort_unstable();
    assert_eq!(all, (0..20).filter(|n| *n != 11).collect::<Vec<u32>>());
}

#[tokio::test]
async fn many_partitions_are_pushed_to_at_once() {
    let fixture = Fixture::new().await;
    let items = |round: usize| (0..2500).map(move |n| item("mail", &format!("p{n}"), &round.to_string())).collect();

    soon(fixture.messages.push(items(1))).await;
    let answers = soon(fixture.messages.push(items(2))).await;

    assert_eq!(seqs(&answers), vec![2; 2500]);
    assert_eq!(fixture.count("reveille.partition_row where next_seq = 3").await, 2500);
}

#[tokio::test]
async fn after_the_end_pushes_are_refused_in_words() {
    let fixture = Fixture::new().await;
    push(&fixture.messages, "mail", "first").await;

    soon(fixture.messages.close()).await;

    let refused = soon(fixture.messages.push_one(item("mail", "a", "late"))).await.unwrap_err();
    assert_eq!(refused.to_string(), "the queues are closing");
}
