//! Settlements of leases, and their answers.

use std::time::Duration;

use reveille::messages::{MessagesError, Pop, Settled, Settlement};

use crate::pop_kit::{group, none, pop, pop_queue, push_to, stranded, texts};
use crate::settle_kit::{Aside, Cursor, DEAD, KEPT, RELEASED, complete, settle};
use crate::support::{Fixture, queue, soon, until_blocked};

#[tokio::test]
async fn an_ack_settles_and_a_repeat_is_harmless() {
    let it = Fixture::new().await;
    push_to(&it.messages, "mail", "a", &["1", "2"]).await;
    let batch = pop_queue(&it.messages, "mail", 2).await;

    let answers = [
        settle(&it.messages, Settlement::complete(&batch.partitions[0])).await,
        settle(&it.messages, Settlement::complete(&batch.partitions[0])).await,
    ];

    assert_eq!(answers, [RELEASED, Settled::Already]);
    assert_eq!(it.cursor().await, Cursor { committed: 2, failures: 0, deliveries: 0, leased: false, due: false });
}

#[tokio::test]
async fn the_same_ack_twice_in_one_call_settles_once() {
    let it = Fixture::new().await;
    push_to(&it.messages, "mail", "a", &["1"]).await;
    let batch = pop_queue(&it.messages, "mail", 1).await;
    let twice = vec![Settlement::complete(&batch.partitions[0]), Settlement::complete(&batch.partitions[0])];

    let answers: Vec<_> = soon(it.messages.settle(twice)).await.into_iter().map(|answer| answer.unwrap()).collect();

    assert_eq!(answers, [RELEASED, Settled::Already]);
}

#[tokio::test]
async fn after_somebody_else_has_claimed_an_ack_settles_nothing() {
    let it = Fixture::new().await;
    push_to(&it.messages, "mail", "a", &["1"]).await;
    let zombie = pop_queue(&it.messages, "mail", 1).await;
    it.expire().await;
    let heir = pop_queue(&it.messages, "mail", 1).await;

    for late in [
        Settlement::complete(&zombie.partitions[0]),
        Settlement::fail(&zombie.partitions[0], 1, "late"),
        Settlement::retry(&zombie.partitions[0], 1),
        Settlement::dead(&zombie.partitions[0], 1, "late"),
        Settlement::release(&zombie.partitions[0]),
    ] {
        assert_eq!(settle(&it.messages, late).await, Settled::LeaseLost);
    }

    assert!(it.messages.renew(zombie.lease.unwrap(), None).await.unwrap().is_none());
    assert_eq!(settle(&it.messages, Settlement::complete(&heir.partitions[0])).await, RELEASED);
    assert_eq!(it.count("reveille.dead_letter").await, 0);
}

#[tokio::test]
async fn an_ended_lease_may_be_settled_until_somebody_else_has_it_unless_the_caller_is_strict() {
    let it = Fixture::new().await;
    push_to(&it.messages, "mail", "a", &["1", "2"]).await;
    let batch = pop_queue(&it.messages, "mail", 2).await;
    it.expire().await;

    let strict = settle(&it.messages, Settlement::complete(&batch.partitions[0]).strict()).await;
    let strict_fail = settle(&it.messages, Settlement::fail(&batch.partitions[0], 1, "no").strict()).await;
    let plain = settle(&it.messages, Settlement::complete(&batch.partitions[0])).await;

    assert_eq!((strict, strict_fail, plain), (Settled::Expired, Settled::Expired, RELEASED));
}

#[tokio::test]
async fn a_lease_is_its_groups_own() {
    let it = Fixture::new().await;
    push_to(&it.messages, "mail", "a", &["1"]).await;
    let (billing, audit) = (group("billing"), group("audit"));
    let one = pop(&it.messages, Pop::queue(queue("mail")).group(billing)).await.unwrap();
    let other = pop(&it.messages, Pop::queue(queue("mail")).group(audit)).await.unwrap();

    complete(&it.messages, &one).await;

    assert_eq!(it.count("reveille.cursor where committed = 1").await, 1);
    assert_eq!(settle(&it.messages, Settlement::complete(&other.partitions[0])).await, RELEASED);
}

#[tokio::test]
async fn a_part_of_a_lease_can_be_completed_while_the_rest_stays_leased() {
    let it = Fixture::new().await;
    push_to(&it.messages, "mail", "a", &["1", "2", "3"]).await;
    let batch = pop_queue(&it.messages, "mail", 3).await;
    let lease = &batch.partitions[0];

    assert_eq!(settle(&it.messages, Settlement::complete_through(lease, 2)).await, KEPT);
    none(&it.messages, "mail").await;
    assert_eq!(settle(&it.messages, Settlement::complete_through(lease, 1)).await, Settled::Already);
    assert_eq!(settle(&it.messages, Settlement::complete_through(lease, 3)).await, RELEASED);

    assert_eq!(it.cursor().await.committed, 3);
}

#[tokio::test]
async fn a_failed_message_comes_again_with_all_that_follow_it() {
    let it = Fixture::new().await;
    push_to(&it.messages, "mail", "a", &["1", "2", "3", "4"]).await;
    let batch = pop_queue(&it.messages, "mail", 4).await;

    let failed = settle(&it.messages, Settlement::fail(&batch.partitions[0], 3, "no")).await;
    let again = pop_queue(&it.messages, "mail", 4).await;

    assert_eq!(failed, RELEASED);
    assert_eq!(texts(&again), ["3", "4"]);
    assert_eq!(it.cursor().await, Cursor { committed: 2, failures: 1, deliveries: 2, leased: true, due: false });
}

#[tokio::test]
async fn after_its_retry_limit_a_message_goes_to_the_dead_letters_and_the_count_begins_anew() {
    let it = Fixture::new().await;
    push_to(&it.messages, "mail", "a", &["bad", "worse"]).await;
    it.set("mail", "retry_limit = 1").await;

    let mut answers = Vec::new();
    for seq in [1, 1, 2, 2] {
        let batch = pop_queue(&it.messages, "mail", 2).await;
        answers.push(settle(&it.messages, Settlement::fail(&batch.partitions[0], seq, format!("boom {seq}"))).await);
    }

    assert_eq!(answers, [RELEASED, DEAD, RELEASED, DEAD]);
    none(&it.messages, "mail").await;
    let read = "select seq, failures, error, convert_from(payload, 'utf8') from reveille.dead_letter order by seq";
    let rows = it.client().await.query(read, &[]).await.unwrap();
    let letters: Vec<(i64, i32, String, String)> =
        rows.iter().map(|row| (row.get(0), row.get(1), row.get(2), row.get(3))).collect();
    let letter = |seq, error: &str, payload: &str| (seq, 2, error.to_owned(), payload.to_owned());
    assert_eq!(letters, [letter(1, "boom 1", "bad"), letter(2, "boom 2", "worse")]);
}

#[tokio::test]
async fn progress_forgives_earlier_failures() {
    let it = Fixture::new().await;
    push_to(&it.messages, "mail", "a", &["1", "2", "3"]).await;
    it.set("mail", "retry_limit = 1").await;

    for failing in [1, 2, 3] {
        let batch = pop_queue(&it.messages, "mail", 3).await;
        let failed = settle(&it.messages, Settlement::fail(&batch.partitions[0], failing, "no")).await;
        assert_eq!(failed, RELEASED, "message {failing} had failed once");
    }

    assert_eq!((it.cursor().await.committed, it.cursor().await.failures), (2, 1));
}

#[tokio::test]
async fn a_retry_and_an_ended_lease_charge_nothing() {
    let it = Fixture::new().await;
    push_to(&it.messages, "mail", "a", &["1"]).await;
    it.set("mail", "retry_limit = 0").await;

    for _ in 0..3 {
        let batch = pop_queue(&it.messages, "mail", 1).await;
        assert_eq!(settle(&it.messages, Settlement::retry(&batch.partitions[0], 1)).await, RELEASED);
        pop_queue(&it.messages, "mail", 1).await;
        it.expire().await;
    }

    assert_eq!((it.cursor().await.failures, it.count("reveille.dead_letter").await), (0, 0));
}

#[tokio::test]
async fn a_release_is_as_if_it_had_never_been_claimed() {
    let it = Fixture::new().await;
    push_to(&it.messages, "mail", "a", &["1", "2"]).await;
    let batch = pop_queue(&it.messages, "mail", 2).await;

    assert_eq!(settle(&it.messages, Settlement::release(&batch.partitions[0])).await, RELEASED);
    assert_eq!(it.cursor().await, Cursor { committed: 0, failures: 0, deliveries: 0, leased: false, due: true });

    let again = pop_queue(&it.messages, "mail", 2).await;
    assert_eq!(again.partitions[0].deliveries, 1);
    assert_eq!(it.messages.release(again.lease.unwrap()).await.unwrap(), 1);
    assert_eq!(it.messages.release(again.lease.unwrap()).await.unwrap(), 0);
}

#[tokio::test]
async fn a_lease_over_several_partitions_is_renewed_and_released_as_one() {
    let it = Fixture::new().await;
    for partition in ["a", "b", "c"] {
        push_to(&it.messages, "mail", partition, &["1"]).await;
    }
    let batch = pop(&it.messages, Pop::queue(queue("mail")).batch(10).partitions(10)).await.unwrap();
    let lease = batch.lease.unwrap();

    let renewed = it.messages.renew(lease, Some(Duration::from_secs(600))).await.unwrap().unwrap();
    let shorter = it.messages.renew(lease, Some(Duration::from_secs(1))).await.unwrap().unwrap();

    assert_eq!((renewed.partitions, shorter.partitions), (3, 3));
    assert!(renewed.remaining > Duration::from_secs(590));
    assert_eq!(shorter.until, renewed.until, "a lease is never shortened");
    assert_eq!(it.messages.release(lease).await.unwrap(), 3);
    assert!(it.messages.renew(lease, None).await.unwrap().is_none());
}

#[tokio::test]
async fn an_ended_lease_can_be_renewed_unless_the_caller_is_strict() {
    let it = Fixture::new().await;
    push_to(&it.messages, "mail", "a", &["1"]).await;
    let lease = pop_queue(&it.messages, "mail", 1).await.lease.unwrap();
    it.expire().await;

    assert!(it.messages.renew_strictly(lease, None).await.unwrap().is_none());
    assert!(it.messages.renew(lease, None).await.unwrap().is_some());
    none(&it.messages, "mail").await;
}

#[tokio::test]
async fn leases_of_no_length_or_of_centuries_are_refused_in_words() {
    let it = Fixture::new().await;
    push_to(&it.messages, "mail", "a", &["1"]).await;
    let lease = pop_queue(&it.messages, "mail", 1).await.lease.unwrap();

    for time in [Duration::ZERO, Duration::MAX, Duration::from_secs(400 * 24 * 3600)] {
        let refused = it.messages.renew(lease, Some(time)).await.unwrap_err();
        assert!(matches!(refused, MessagesError::OutOfRange { .. }));
        assert!(refused.to_string().starts_with("a lease must be longer than nothing and at most a year, not "));
    }
}

#[tokio::test]
async fn sequences_that_are_not_in_the_lease_are_outside_of_it() {
    let it = Fixture::new().await;
    push_to(&it.messages, "mail", "a", &["1", "2", "3"]).await;
    let batch = pop_queue(&it.messages, "mail", 2).await;
    let lease = &batch.partitions[0];

    assert_eq!(settle(&it.messages, Settlement::complete_through(lease, i64::MAX)).await, Settled::Outside);
    assert_eq!(settle(&it.messages, Settlement::complete_through(lease, 3)).await, Settled::Outside);
    assert_eq!(settle(&it.messages, Settlement::fail(lease, i64::MAX, "")).await, Settled::Outside);
    assert_eq!(settle(&it.messages, Settlement::fail(lease, 3, "")).await, Settled::Outside);
    assert_eq!(settle(&it.messages, Settlement::dead(lease, i64::MIN, "")).await, Settled::Passed);
    assert_eq!(settle(&it.messages, Settlement::complete_through(lease, i64::MIN)).await, Settled::Already);

    assert_eq!(it.cursor().await, Cursor { committed: 0, failures: 0, deliveries: 1, leased: true, due: false });
}

#[tokio::test]
async fn what_is_settled_cannot_fail_any_more() {
    let it = Fixture::new().await;
    push_to(&it.messages, "mail", "a", &["1", "2"]).await;
    let batch = pop_queue(&it.messages, "mail", 2).await;
    let lease = &batch.partitions[0];
    settle(&it.messages, Settlement::complete_through(lease, 1)).await;

    assert_eq!(settle(&it.messages, Settlement::fail(lease, 1, "late")).await, Settled::Passed);
    settle(&it.messages, Settlement::complete(lease)).await;
    assert_eq!(settle(&it.messages, Settlement::fail(lease, 2, "late")).await, Settled::Passed);

    assert_eq!(it.cursor().await.committed, 2);
}

#[tokio::test]
async fn a_repeated_nack_is_charged_once() {
    let it = Fixture::new().await;
    push_to(&it.messages, "mail", "a", &["1"]).await;
    let batch = pop_queue(&it.messages, "mail", 1).await;

    let first = settle(&it.messages, Settlement::fail(&batch.partitions[0], 1, "no")).await;
    let repeat = settle(&it.messages, Settlement::fail(&batch.partitions[0], 1, "no")).await;

    assert_eq!((first, repeat), (RELEASED, Settled::Already));
    assert_eq!(it.cursor().await.failures, 1);
}

#[tokio::test]
async fn a_retry_delay_hides_the_partition_however_long_it_is() {
    let it = Fixture::new().await;
    push_to(&it.messages, "mail", "a", &["1"]).await;
    it.set("mail", "retry_delay = interval '178000000 years'").await;
    let batch = pop_queue(&it.messages, "mail", 1).await;

    assert_eq!(settle(&it.messages, Settlement::fail(&batch.partitions[0], 1, "no")).await, RELEASED);

    none(&it.messages, "mail").await;
    assert_eq!(it.count("reveille.cursor where due_at > clock_timestamp() + interval '9 years'").await, 1);
}

#[tokio::test]
async fn a_queue_without_dead_letters_drops_what_failed_too_often_and_keeps_what_was_meant_to_be_dead() {
    let it = Fixture::new().await;
    push_to(&it.messages, "mail", "a", &["1", "2"]).await;
    it.set("mail", "retry_limit = 0, dead_letters = false").await;

    let batch = pop_queue(&it.messages, "mail", 1).await;
    assert_eq!(settle(&it.messages, Settlement::fail(&batch.partitions[0], 1, "no")).await, DEAD);
    let batch = pop_queue(&it.messages, "mail", 1).await;
    assert_eq!(settle(&it.messages, Settlement::dead(&batch.partitions[0], 2, "no")).await, DEAD);

    assert_eq!((it.cursor().await.committed, it.count("reveille.dead_letter where seq = 2").await), (2, 1));
    assert_eq!(it.count("reveille.dead_letter").await, 1);
}

#[tokio::test]
async fn an_error_text_with_nul_does_not_keep_a_failure_from_being_recorded() {
    let it = Fixture::new().await;
    push_to(&it.messages, "mail", "a", &["1"]).await;
    let batch = pop_queue(&it.messages, "mail", 1).await;

    assert_eq!(settle(&it.messages, Settlement::dead(&batch.partitions[0], 1, "a\0b")).await, DEAD);

    assert_eq!(it.count("reveille.dead_letter where error = 'a\u{fffd}b'").await, 1);
}

#[tokio::test]
async fn there_is_nothing_to_settle_about_auto_acked_messages() {
    let it = Fixture::new().await;
    push_to(&it.messages, "mail", "a", &["1"]).await;
    let batch = pop(&it.messages, Pop::queue(queue("mail")).auto_ack()).await.unwrap();

    assert_eq!(settle(&it.messages, Settlement::complete(&batch.partitions[0])).await, Settled::Already);
    assert_eq!(settle(&it.messages, Settlement::fail(&batch.partitions[0], 1, "no")).await, Settled::Passed);
}

#[tokio::test]
async fn a_lease_that_ends_while_its_ack_waits_for_the_row_is_the_new_holders() {
    let it = Fixture::new().await;
    push_to(&it.messages, "mail", "a", &["1"]).await;
    let batch = pop_queue(&it.messages, "mail", 1).await;
    let mut other = it.client().await;
    let takeover = other.transaction().await.unwrap();
    let steal = "update reveille.cursor set nonce = gen_random_uuid(), epoch = epoch + 1";
    takeover.execute(steal, &[]).await.unwrap();

    let messages = it.messages.clone();
    let ack = Aside::begin(async move { settle(&messages, Settlement::complete(&batch.partitions[0])).await });
    until_blocked(&it.client().await, 1).await;
    takeover.commit().await.unwrap();

    assert_eq!(ack.done().await, Settled::LeaseLost);
    assert_eq!(it.cursor().await.committed, 0);
}

#[tokio::test]
async fn the_last_ack_and_a_push_never_strand_a_message_whichever_comes_first() {
    let it = Fixture::new().await;
    push_to(&it.messages, "mail", "a", &["1"]).await;
    let batch = pop_queue(&it.messages, "mail", 1).await;
    let mut other = it.client().await;
    let held = other.transaction().await.unwrap();
    held.execute("select 1 from reveille.cursor for update", &[]).await.unwrap();

    let messages = it.messages.clone();
    let ack = Aside::begin(async move { settle(&messages, Settlement::complete(&batch.partitions[0])).await });
    until_blocked(&it.client().await, 1).await;
    push_to(&it.messages, "mail", "a", &["2"]).await;
    held.commit().await.unwrap();

    assert_eq!(ack.done().await, RELEASED);
    assert_eq!(stranded(&it.client().await).await, 0);
    assert_eq!(texts(&pop_queue(&it.messages, "mail", 1).await), ["2"]);
}
