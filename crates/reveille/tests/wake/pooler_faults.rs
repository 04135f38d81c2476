//! A transaction pooler where LISTEN needs a session of its own. It accepts LISTEN, and even passes
//! the echo of our own statement, because for that moment the session is ours; hints of other nodes
//! are lost.

use std::time::{Duration, Instant};

use reveille::database::StatementMode;
use reveille_testkit::plain_queue::{self, Node, NodeOptions};
use reveille_testkit::{LoginSettings, Pooler};
use reveille_wake::{Answer, Event};
use tokio_postgres::SimpleQueryMessage;

use crate::support::{NEVER, database, parked};

fn pooled(pooler: &Pooler) -> NodeOptions {
    let mut options = NodeOptions::new(pooler.url()).heartbeat(Duration::from_millis(100));
    options.database = options.database.statement_mode(StatementMode::Pooled);
    options
}

#[tokio::test]
async fn a_pooler_as_the_only_way_never_proves_the_link_and_work_is_found_by_polling() {
    let database = database().await;
    for settings in [LoginSettings::Refused, LoginSettings::Swallowed] {
        let Some(pooler) = Pooler::before(&database, 1, settings) else { return };
        let node = Node::start_unproven(pooled(&pooler)).await;
        node.events.until(|event| matches!(event, Event::Link(_))).await;

        for _ in 0..3 {
            let waiting = node.ask("mail");
            let began = Instant::now();
            plain_queue::add_silently(&database.client().await, "mail", 1, 0.0).await;
            assert!(matches!(waiting.await, Answer::Lease(_)));
            assert!(began.elapsed() < Duration::from_secs(3), "{settings:?}: {:?}", began.elapsed());
        }

        let proven = node.events.count(|event| matches!(event, Event::Link(link) if link.is_proven()));
        assert_eq!(proven, 0, "{settings:?}: an echo of our own statement proves nothing here");
        assert_eq!(left_behind(&pooler).await, Some("0".to_owned()), "{settings:?}");
        node.close().await;
    }
}

/// What of ours the next client gets with the pooler's session: channels it listens on, and what a
/// commit is worth.
async fn left_behind(pooler: &Pooler) -> Option<String> {
    let client = reveille_testkit::connect(&pooler.url()).await;
    let ask = "select (select count(*) from pg_listening_channels()) + (select count(*) from pg_settings
         where name in ('synchronous_commit', 'statement_timeout') and source = 'session')";
    let answer = client.simple_query(ask).await.unwrap();
    answer.iter().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => row.get(0).map(ToOwned::to_owned),
        _ => None,
    })
}

#[tokio::test]
async fn with_a_direct_way_for_listen_the_link_is_proven_behind_a_pooler() {
    let database = database().await;
    let Some(pooler) = Pooler::before(&database, 1, LoginSettings::Refused) else { return };
    let mut options = pooled(&pooler).heartbeat(NEVER);
    options.database = options.database.listen_url(database.url());
    let (pusher, node) = (Node::start(options.clone()).await, Node::start(options).await);
    let waiting = node.ask("mail");
    parked(&node).await;

    pusher.push("mail", 1).await;

    assert!(matches!(waiting.await, Answer::Lease(_)));
    assert_eq!(node.counters.missed(), 0);
}
