//! Consumers that go away, connections that break, and crowds.

use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use futures_util::poll;
use reveille::database::{Database, DatabaseOptions};
use reveille::messages::{Batch, Messages, MessagesOptions, Pop};
use reveille_testkit::{Direction, TestDatabase};

use crate::pop_kit::{NEVER, Node, WAIT, group, none, number, pop_queue, push_to, texts};
use crate::support::{push, queue, soon, until_blocked};

fn mail() -> Pop {
    Pop::queue(queue("mail"))
}

async fn drained(node: &Node) {
    push(&node.messages, "mail", "before").await;
    let batch = pop_queue(&node.messages, "mail", 1).await;
    node.messages.complete(&batch).await.pop().unwrap().unwrap();
}

/// Makes one claim round with every statement, so that all are prepared: the next answer on the
/// connection is that of the claim.
async fn warmed(node: &Node, producer: &Node) {
    let waiting = node.parked(mail()).await;
    push(&producer.messages, "mail", "warm").await;
    let warm = soon(waiting).await.unwrap().unwrap();
    node.messages.complete(&warm).await.pop().unwrap().unwrap();
}

/// A node that is cut off from the answer to its claim: other consumers need not wait until the
/// lease ends.
#[tokio::test]
async fn a_claim_whose_answer_was_lost_is_released_at_once_and_charges_nobody() {
    let db = TestDatabase::new().await;
    let (proxy, url) = db.proxied().await;
    let options = DatabaseOptions::new(&url).listen_url(db.url()).heartbeat(NEVER);
    let node = Node::with(options).await.proven().await;
    let producer = Node::on(&db).await;
    drained(&node).await;
    warmed(&node, &producer).await;
    let waiting = node.joined(mail()).await;

    proxy.cut_after(Direction::ToClient, 0);
    push(&producer.messages, "mail", "hello").await;
    let batch = soon(waiting).await.unwrap().expect("the claim is released, and made again");

    assert_eq!((texts(&batch), batch.partitions[0].deliveries), (vec!["hello".to_owned()], 1));
    let claims = number(&db.client().await, "select epoch from reveille.cursor").await;
    assert_eq!(claims, 4, "two for the messages before, one whose answer was lost, one that arrived");
}

#[tokio::test]
async fn what_was_claimed_for_a_consumer_that_went_away_goes_to_the_next_without_another_claim() {
    let db = TestDatabase::new().await;
    let node = Node::on(&db).await.proven().await;
    drained(&node).await;
    let (mut holder, watcher) = (db.client().await, db.client().await);
    let gone = node.parked(mail()).await;
    let mut next = Box::pin(node.messages.pop(mail().wait(WAIT)));
    assert!(poll!(&mut next).is_pending());
    // The claim of both is under way when the first goes; only one message is there.
    let held = holder.transaction().await.unwrap();
    held.execute("lock table reveille.cursor in access exclusive mode", &[]).await.unwrap();
    push(&node.messages, "mail", "hello").await;
    until_blocked(&watcher, 1).await;

    gone.abort();
    assert!(gone.await.unwrap_err().is_cancelled());
    held.rollback().await.unwrap();

    let batch = soon(next).await.unwrap().unwrap();
    assert_eq!((texts(&batch), batch.partitions[0].deliveries), (vec!["hello".to_owned()], 1));
    assert_eq!(number(&watcher, "select epoch from reveille.cursor").await, 2);
}

/// Its answer is delayed for longer than the lease; another consumer does the work meanwhile.
#[tokio::test]
async fn what_was_claimed_for_a_consumer_that_went_away_goes_to_nobody_after_its_lease_has_ended() {
    let db = TestDatabase::new().await;
    let (proxy, url) = db.proxied().await;
    let options = DatabaseOptions::new(&url).listen_url(db.url()).heartbeat(NEVER);
    let node = Node::with(options).await.proven().await;
    let other = Node::on(&db).await;
    drained(&node).await;
    warmed(&node, &other).await;
    let (mut holder, watcher) = (db.client().await, db.client().await);
    watcher.batch_execute("update reveille.queue set lease = '1 second'").await.unwrap();
    let gone = node.joined(mail()).await;
    let mut next = Box::pin(node.messages.pop(mail().wait(WAIT)));
    assert!(poll!(&mut next).is_pending());
    let held = holder.transaction().await.unwrap();
    held.execute("lock table reveille.cursor in access exclusive mode", &[]).await.unwrap();
    push(&other.messages, "mail", "done").await;
    until_blocked(&watcher, 1).await;
    proxy.stall();
    held.rollback().await.unwrap();
    soon(async { while number(&watcher, "select count(lease_until) from reveille.cursor").await == 0 {} }).await;

    // Not before the lease has ended, for it was claimed for the node.
    let batch = soon(other.messages.pop(mail().wait(WAIT))).await.unwrap().unwrap();
    other.messages.complete(&batch).await.pop().unwrap().unwrap();
    gone.abort();
    assert!(gone.await.unwrap_err().is_cancelled());
    proxy.heal();
    push(&other.messages, "mail", "new").await;

    assert_eq!(texts(&batch), ["done"]);
    assert_eq!(batch.partitions[0].deliveries, 2, "the node had claimed it");
    assert_eq!(texts(&soon(next).await.unwrap().unwrap()), ["new"]);
}

#[tokio::test]
async fn what_was_claimed_for_a_consumer_that_went_away_is_released_uncharged_when_nobody_else_waits_here() {
    let db = TestDatabase::new().await;
    let (node, there) = (Node::on(&db).await.proven().await, Node::on(&db).await.proven().await);
    drained(&node).await;
    let (mut holder, watcher) = (db.client().await, db.client().await);
    let gone = node.parked(mail()).await;
    let held = holder.transaction().await.unwrap();
    held.execute("lock table reveille.cursor in access exclusive mode", &[]).await.unwrap();
    push(&node.messages, "mail", "hello").await;
    until_blocked(&watcher, 1).await;

    gone.abort();
    assert!(gone.await.unwrap_err().is_cancelled());
    held.rollback().await.unwrap();

    let batch = soon(there.messages.pop(mail().wait(WAIT))).await.unwrap().unwrap();
    assert_eq!((texts(&batch), batch.partitions[0].deliveries), (vec!["hello".to_owned()], 1));
}

#[tokio::test]
async fn what_a_consumer_that_acks_by_popping_did_not_get_comes_again() {
    let db = TestDatabase::new().await;
    let node = Node::on(&db).await.proven().await;
    drained(&node).await;
    let (mut holder, watcher) = (db.client().await, db.client().await);
    let gone = node.parked(mail().auto_ack().batch(5)).await;
    let held = holder.transaction().await.unwrap();
    held.execute("lock table reveille.cursor in access exclusive mode", &[]).await.unwrap();
    push_to(&node.messages, "mail", "Default", &["1", "2"]).await;
    until_blocked(&watcher, 1).await;

    gone.abort();
    assert!(gone.await.unwrap_err().is_cancelled());
    held.rollback().await.unwrap();

    let batch = soon(node.messages.pop(mail().batch(5).wait(WAIT))).await.unwrap().unwrap();
    assert_eq!(texts(&batch), ["1", "2"]);
}

type Waiting<'m> = Pin<Box<dyn Future<Output = Result<Option<Batch>, reveille::messages::MessagesError>> + 'm>>;

#[tokio::test]
async fn of_a_thousand_waiting_pops_one_push_serves_one_in_one_claim_round() {
    let db = TestDatabase::new().await;
    let node = Node::on(&db).await.proven().await;
    drained(&node).await;
    none(&node.messages, "mail").await;
    let mut waiting: Vec<Waiting<'_>> =
        (0..1000).map(|_| Box::pin(node.messages.pop(mail().wait(WAIT))) as Waiting<'_>).collect();
    for pop in &mut waiting {
        assert!(poll!(pop.as_mut()).is_pending());
    }
    // When this later pop has had its claim round, all pops wait.
    none(&node.messages, "mail").await;
    let rounds = node.rounds();

    push(&node.messages, "mail", "hello").await;
    let answered = soon(waiting[0].as_mut()).await.unwrap().unwrap();

    assert_eq!(texts(&answered), ["hello"]);
    assert_eq!(node.rounds() - rounds, 1, "{:?}", &node.events.all()[..]);
    for pop in &mut waiting[1..] {
        assert!(matches!(poll!(pop.as_mut()), Poll::Pending));
    }
}

#[tokio::test]
async fn a_thousand_messages_reach_a_thousand_that_wait() {
    let db = TestDatabase::new().await;
    let node = Node::on(&db).await.proven().await;
    let mut waiting = tokio::task::JoinSet::new();
    for number in 0..1000 {
        let messages = node.messages.clone();
        let name = group(if number % 2 == 0 { "even" } else { "odd" });
        waiting.spawn(async move { messages.pop(mail().group(name).wait(WAIT)).await.unwrap().unwrap() });
    }

    let items = (0..500).map(|number| crate::support::item("mail", &number.to_string(), "hello")).collect();
    for pushed in node.messages.push(items).await {
        pushed.unwrap();
    }

    let mut messages = std::collections::HashSet::new();
    while let Some(batch) = soon(waiting.join_next()).await {
        let batch = batch.unwrap();
        assert!(messages.insert((batch.group.to_string(), batch.partitions[0].partition.to_string())));
    }
    assert_eq!(messages.len(), 1000);
}

#[tokio::test]
async fn closing_answers_waiting_pops_and_leaves_nothing_leased() {
    let db = TestDatabase::new().await;
    let node = Node::on(&db).await.proven().await;
    drained(&node).await;
    let messages = node.messages.clone();
    let mut waiting = Box::pin(messages.pop(mail().wait(WAIT)));
    assert!(poll!(&mut waiting).is_pending());

    soon(node.messages.close()).await;

    assert_eq!(soon(waiting).await.unwrap_err().to_string(), "the queues are closing");
    let leased = "select count(*) from reveille.cursor where lease_until is not null";
    assert_eq!(number(&db.client().await, leased).await, 0);
}

#[tokio::test]
async fn more_waiters_than_are_allowed_are_refused_in_words() {
    let db = TestDatabase::new().await;
    let database =
        soon(Database::connect(DatabaseOptions::new(db.url()).heartbeat(Duration::from_secs(60)))).await.unwrap();
    let messages = Messages::new(&database, MessagesOptions::default().waiters_max(2));
    let mut first = Box::pin(messages.pop(mail().wait(WAIT)));
    let mut second = Box::pin(messages.pop(mail().group(group("g")).wait(WAIT)));
    // Names that do not exist are read from the database, so that one poll is not enough.
    let refused = soon(async {
        loop {
            let _ = (poll!(&mut first), poll!(&mut second));
            match poll!(Box::pin(messages.pop(mail().wait(WAIT)))) {
                Poll::Ready(Err(refused)) => return refused,
                Poll::Ready(Ok(popped)) => panic!("{popped:?}"),
                Poll::Pending => tokio::task::yield_now().await,
            }
            match messages.pop(mail().wait(Duration::from_millis(1))).await {
                Err(refused) => return refused,
                Ok(popped) => assert!(popped.is_none()),
            }
        }
    })
    .await;

    assert_eq!(refused.to_string(), "too much is asked at once: 2 waiters exist already");
}
