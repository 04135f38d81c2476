//! Pushes over a connection that fails: stored once and answered, or refused in words.

use std::time::Duration;

use reveille::database::{Database, DatabaseError, DatabaseOptions};
use reveille::messages::{Messages, MessagesError, MessagesOptions, Pop, PushItem, PushOutcome, Switch};
use reveille_testkit::FaultProxy;
use reveille_wake::Cause;
use tokio::task::JoinSet;

use crate::pop_kit::{Node, pop_queue, spawn, texts};
use crate::support::{Fixture, item, push, queue, seqs, soon, until_blocked};

/// A node whose connections go through a proxy, and which has pushed once.
async fn proxied(fixture: &Fixture) -> (FaultProxy, Messages) {
    let (proxy, url) = fixture.db.proxied().await;
    let options = DatabaseOptions::new(url).connect_timeout(Duration::from_secs(2));
    let database = soon(Database::connect(options)).await.unwrap();
    let messages = Messages::new(&database, MessagesOptions::default());
    soon(messages.push(vec![item("mail", "a", "first"), item("mail", "b", "first")])).await;
    (proxy, messages)
}

/// The sessions in which this database is pushed to.
async fn sessions(fixture: &Fixture) -> Vec<i32> {
    let pids = "select pid from pg_stat_activity
         where datname = current_database() and application_name like 'reveille push%' order by pid";
    fixture.client().await.query(pids, &[]).await.unwrap().iter().map(|row| row.get(0)).collect()
}

#[tokio::test]
async fn a_push_whose_answer_was_lost_is_stored_once_and_answered() {
    let fixture = Fixture::new().await;
    let (proxy, messages) = proxied(&fixture).await;
    let before = sessions(&fixture).await;

    proxy.cut_after_sending("the marker");
    let items = vec![item("mail", "a", "second"), item("mail", "a", "the marker"), item("mail", "a", "fourth")];
    let answers = soon(messages.push(items)).await;

    assert_eq!(seqs(&answers), [2, 3, 4]);
    assert_eq!(fixture.texts("mail", "a").await, ["first", "second", "the marker", "fourth"]);
    assert!(sessions(&fixture).await.iter().all(|pid| !before.contains(pid)), "it was asked in another session");
}

/// The second attempt finds the message in the log and appends nothing; the first woke nobody.
#[tokio::test]
async fn a_push_whose_answer_was_lost_wakes_a_waiting_pop() {
    let fixture = Fixture::new().await;
    let (proxy, messages) = proxied(&fixture).await;
    let here = Node::on(&fixture.db).await.proven().await;
    for _ in ["a", "b"] {
        let batch = pop_queue(&here.messages, "mail", 1).await;
        here.messages.complete(&batch).await.pop().unwrap().unwrap();
    }
    let waiting = here.parked(Pop::queue(queue("mail"))).await;

    proxy.cut_after_sending("the marker");
    soon(messages.push_one(item("mail", "a", "the marker"))).await.unwrap();

    assert_eq!(texts(&soon(waiting).await.unwrap().unwrap()), ["the marker"]);
    assert_eq!(here.cause_of_last_find(), Some(Cause::Notified));
}

#[tokio::test]
async fn a_push_with_a_transaction_id_whose_answer_was_lost_is_stored_and_no_duplicate_of_itself() {
    let fixture = Fixture::new().await;
    let (proxy, messages) = proxied(&fixture).await;
    let named = |payload: &str, id: &str| item("mail", "a", payload).transaction_id(id);

    proxy.cut_after_sending("the marker");
    let items = vec![named("second", "x"), named("the marker", "y"), named("fourth", "x")];
    let answers: Vec<_> = soon(messages.push(items)).await.into_iter().map(Result::unwrap).collect();
    let again = soon(messages.push_one(named("fifth", "y"))).await.unwrap();

    assert_eq!(answers[0].outcome, PushOutcome::Stored { seq: 2 });
    assert_eq!(answers[1].outcome, PushOutcome::Stored { seq: 3 });
    assert_eq!(answers[2].outcome, PushOutcome::Duplicate { of: answers[0].id });
    assert_eq!(again.outcome, PushOutcome::Duplicate { of: answers[1].id });
    assert_eq!(fixture.texts("mail", "a").await, ["first", "second", "the marker"]);
}

/// The first attempt stores the message, and its answer is lost; before the second, pushes are
/// paused. The second must not put the message into the outbox too.
#[tokio::test]
async fn a_push_whose_answer_was_lost_before_pushes_were_paused_is_stored_once() {
    let fixture = Fixture::new().await;
    let (proxy, messages) = proxied(&fixture).await;
    let (mut holder, watcher) = (fixture.client().await, fixture.client().await);
    let held = holder.transaction().await.unwrap();
    held.execute("select from reveille.partition_row for update", &[]).await.unwrap();
    let pushing = spawn(async move { messages.push_one(item("mail", "a", "second")).await });
    until_blocked(&watcher, 1).await;

    proxy.stall();
    proxy.cut();
    held.rollback().await.unwrap();
    soon(async { while fixture.texts("mail", "a").await.len() < 2 {} }).await;
    soon(fixture.messages.turn(Switch::PushPaused, true)).await.unwrap();
    proxy.heal();
    let pushed = soon(pushing).await.unwrap().unwrap();
    soon(fixture.messages.turn(Switch::PushPaused, false)).await.unwrap();
    soon(fixture.messages.push_one(item("mail", "a", "third"))).await.unwrap();

    assert_eq!(pushed.outcome, PushOutcome::Stored { seq: 2 });
    assert_eq!(fixture.texts("mail", "a").await, ["first", "second", "third"]);
}

#[tokio::test]
async fn a_lost_answer_on_the_careful_way_is_made_good_too() {
    let fixture = Fixture::new().await;
    let (proxy, messages) = proxied(&fixture).await;
    // A row in the outbox causes a careful append, which ends with a commit of its own.
    fixture.client().await.batch_execute("select reveille.push('mail', 'foreign', 'a')").await.unwrap();

    proxy.cut_after_sending("commit");
    let answers = soon(messages.push(vec![item("mail", "a", "second"), item("mail", "a", "third")])).await;

    assert_eq!(seqs(&answers), [3, 4]);
    assert_eq!(fixture.texts("mail", "a").await, ["first", "foreign", "second", "third"]);
}

#[tokio::test]
async fn a_push_whose_session_is_ended_before_it_happened_is_stored_once() {
    let fixture = Fixture::new().await;
    push(&fixture.messages, "mail", "first").await;
    let client = fixture.client().await;
    let holder = fixture.client().await;
    holder.batch_execute("begin; select from reveille.partition_row for update").await.unwrap();
    let messages = fixture.messages.clone();
    let mut pushes = JoinSet::new();
    pushes.spawn(async move { messages.push_one(PushItem::new(queue("mail"), "second")).await.unwrap() });
    until_blocked(&client, 1).await;

    let end = "select pg_terminate_backend(pid) from pg_stat_activity
         where datname = current_database() and application_name like 'reveille push%' and wait_event_type = 'Lock'";
    assert_eq!(client.query(end, &[]).await.unwrap().len(), 1);
    until_blocked(&client, 1).await;
    holder.batch_execute("commit").await.unwrap();

    let pushed = soon(pushes.join_all()).await;
    assert_eq!(pushed[0].outcome, PushOutcome::Stored { seq: 2 });
    assert_eq!(fixture.texts("mail", "Default").await, ["first", "second"]);
}

#[tokio::test]
async fn while_postgresql_is_away_a_push_is_refused_in_words_and_afterwards_works() {
    let fixture = Fixture::new().await;
    let (proxy, messages) = proxied(&fixture).await;

    proxy.refuse();
    let refused = soon(messages.push(vec![item("mail", "a", "lost"), item("mail", "b", "lost")])).await;
    proxy.heal();
    let pushed = soon(messages.push_one(item("mail", "a", "second"))).await.unwrap();

    for answer in refused {
        let error = answer.unwrap_err();
        let away =
            matches!(&error, MessagesError::Database(DatabaseError::Lost { .. } | DatabaseError::Unreachable { .. }));
        assert!(away, "{error}");
    }
    assert_eq!(pushed.outcome, PushOutcome::Stored { seq: 2 });
}

#[tokio::test(flavor = "multi_thread")]
async fn over_a_connection_that_is_cut_again_and_again_every_push_is_stored_once_and_in_order() {
    let fixture = Fixture::new().await;
    let (proxy, messages) = proxied(&fixture).await;
    let mut producers = JoinSet::new();
    for producer in 0..4 {
        let messages = messages.clone();
        producers.spawn(async move {
            let mut stored = Vec::new();
            for n in 0..60 {
                let text = format!("{producer} {n:03}");
                loop {
                    let named = item("mail", "a", &text).transaction_id(&*text);
                    match messages.push_one(named).await {
                        Ok(_) => break,
                        Err(MessagesError::Database(_)) => {}
                        Err(other) => panic!("{other}"),
                    }
                }
                stored.push(text);
            }
            stored
        });
    }
    for _ in 0..15 {
        tokio::time::sleep(Duration::from_millis(20)).await;
        proxy.cut();
    }
    let stored = soon(producers.join_all()).await;

    let texts = fixture.texts("mail", "a").await;
    assert_eq!(texts.len(), 241);
    for produced in stored {
        let own: Vec<&String> = texts.iter().filter(|text| text.starts_with(&produced[0][..2])).collect();
        assert!(own.into_iter().eq(&produced), "each once, in the order of its producer");
    }
}

/// A server process that stands still until this is dropped.
struct Stopped(i32);

impl Stopped {
    fn new(pid: i32) -> Self {
        signal("-STOP", pid);
        Self(pid)
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        signal("-CONT", self.0);
    }
}

fn signal(which: &str, pid: i32) {
    let sent = std::process::Command::new("kill").args([which, &pid.to_string()]).status();
    assert!(sent.is_ok_and(|status| status.success()), "a server process can be signalled");
}

#[tokio::test]
async fn a_statement_that_the_server_had_not_begun_when_the_connection_broke_does_not_happen_later() {
    let fixture = Fixture::new().await;
    let (proxy, messages) = proxied(&fixture).await;
    soon(messages.push_one(item("mail", "a", "second"))).await.unwrap();
    let client = fixture.client().await;
    let latest = "select pid from pg_stat_activity
         where datname = current_database() and application_name like 'reveille push%' order by query_start desc limit 1";
    let pid: i32 = client.query_one(latest, &[]).await.unwrap().get(0);
    let stopped = Stopped::new(pid);

    proxy.cut_after_sending("the marker");
    let pushed = soon(messages.push_one(item("mail", "a", "the marker"))).await.unwrap();
    drop(stopped);
    let there = "select count(*) from pg_stat_activity where pid = $1";
    while client.query_one(there, &[&pid]).await.unwrap().get::<_, i64>(0) > 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }

    assert_eq!(pushed.outcome, PushOutcome::Stored { seq: 3 });
    assert_eq!(fixture.texts("mail", "a").await, ["first", "second", "the marker"]);
}
