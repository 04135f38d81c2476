//! When a look may leave out everything but what it was told.

use std::sync::{Arc, Mutex, MutexGuard};

use reveille_wake::{
    Answer, Cause, Dispatcher, DispatcherOptions, DueSource, Hub, HubOptions, Link, Outcome, Patience, Round,
    RoundFailed, RoundResult, Source, Stretch, Watch,
};
use tokio::task::JoinSet;

use crate::rig::{now, proven, secs, settle};

type Key = &'static str;

fn watched(link: Link) -> (Hub<Key>, Watch<Key>) {
    let (hub, _runner) = Hub::new(HubOptions::default());
    hub.set_link(link);
    let mut watch = hub.watch();
    watch.arm("mail").expect("there is room");
    (hub, watch)
}

fn look(watch: &mut Watch<Key>, outcome: Outcome) -> Option<Stretch> {
    let stretch = watch.look_at(&"mail", Cause::More).expect("it is armed").stretch;
    watch.result(&"mail", outcome);
    stretch
}

#[tokio::test(start_paused = true)]
async fn rings_that_say_where_keep_the_stretch() {
    let (hub, mut watch) = watched(proven());
    let before = look(&mut watch, Outcome::Empty);

    hub.wake_announced(&"mail", Cause::Pushed);
    hub.wake_announced(&"mail", Cause::Notified);

    assert!(before.is_some());
    assert_eq!(look(&mut watch, Outcome::UnderFilled), before);
}

/// Whatever comes before or after it: the cause of the look is that of the first.
#[tokio::test(start_paused = true)]
async fn one_ring_that_does_not_say_where_ends_the_stretch() {
    let (hub, mut watch) = watched(proven());
    let before = look(&mut watch, Outcome::Empty);

    hub.wake_announced(&"mail", Cause::Pushed);
    hub.wake(&"mail", Cause::Due);
    hub.wake_announced(&"mail", Cause::Pushed);

    assert_ne!(look(&mut watch, Outcome::Empty), before);
}

/// The look began before the ring, so it may have missed what the ring was about.
#[tokio::test(start_paused = true)]
async fn a_ring_during_a_look_ends_the_stretch_of_that_look() {
    let (hub, mut watch) = watched(proven());
    let during = watch.look_at(&"mail", Cause::More).unwrap().stretch;
    hub.wake(&"mail", Cause::Due);
    watch.result(&"mail", Outcome::Empty);

    assert_ne!(look(&mut watch, Outcome::Empty), during);
}

#[tokio::test(start_paused = true)]
async fn everything_that_is_rung_ends_every_stretch() {
    let (hub, mut watch) = watched(proven());
    let before = look(&mut watch, Outcome::Empty);

    hub.wake_all(Cause::PeerLost);

    assert_ne!(look(&mut watch, Outcome::Empty), before);
}

#[tokio::test(start_paused = true)]
async fn a_look_that_leaves_something_ends_the_stretch_unless_it_knows_where() {
    for outcome in [Outcome::Filled, Outcome::Contended, Outcome::Failed] {
        let (_hub, mut watch) = watched(proven());
        let before = look(&mut watch, outcome);
        assert_ne!(look(&mut watch, Outcome::Empty), before, "{outcome:?}");
    }
    for (outcome, stays) in [(Outcome::Filled, true), (Outcome::Contended, false), (Outcome::Failed, false)] {
        let (_hub, mut watch) = watched(proven());
        let before = watch.look_at(&"mail", Cause::More).unwrap().stretch;
        watch.followed(&"mail", outcome);
        assert_eq!(watch.is_woken(), outcome != Outcome::Contended);
        assert_eq!(look(&mut watch, Outcome::Empty) == before, stays, "{outcome:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn without_a_proven_link_there_is_no_stretch_and_afterwards_another() {
    let (hub, mut watch) = watched(proven());
    let before = look(&mut watch, Outcome::Empty);

    hub.set_link(Link::Connecting { attempts: 1 });
    assert_eq!(look(&mut watch, Outcome::Empty), None);
    hub.set_link(proven());
    assert_ne!(look(&mut watch, Outcome::Empty), before);
}

#[tokio::test(start_paused = true)]
async fn a_key_that_was_forgotten_and_armed_again_has_another_stretch() {
    let (hub, mut watch) = watched(proven());
    let before = look(&mut watch, Outcome::Empty);

    watch.disarm(&"mail");
    hub.wake_announced(&"mail", Cause::Pushed);
    watch.arm("mail").unwrap();

    assert_ne!(look(&mut watch, Outcome::Empty), before, "nobody was there to be told");
}

/// A source that says of every look that it followed what it was told, and remembers in which
/// stretch.
#[derive(Clone, Default)]
struct Follower(Arc<Mutex<Vec<Option<Stretch>>>>);

impl Source for Follower {
    type Key = Key;
    type Request = ();
    type Lease = ();

    async fn claim(&self, round: Round<Key, ()>) -> Result<RoundResult<Key, ()>, RoundFailed> {
        let stretch = round.keys[0].stretch;
        self.seen().push(stretch);
        Ok(RoundResult { followed: vec!["mail"], ..RoundResult::default() })
    }

    async fn release(&self, _leases: Vec<()>) {}
}

/// Its hub, what it saw, and the tasks.
fn following(
    options: DispatcherOptions,
) -> (Hub<Key>, reveille_wake::DispatcherHandle<Follower>, Follower, JoinSet<()>) {
    let (hub, runner) = Hub::new(HubOptions::default());
    hub.set_link(proven());
    let seen = Follower::default();
    let (dispatcher, door) = Dispatcher::new(&hub, seen.clone(), options);
    let mut tasks = JoinSet::new();
    tasks.spawn(runner.run(std::future::pending()));
    tasks.spawn(dispatcher.run(std::future::pending()));
    (hub, door, seen, tasks)
}

impl Follower {
    fn seen(&self) -> MutexGuard<'_, Vec<Option<Stretch>>> {
        self.0.lock().expect("no test panics in here")
    }

    fn stretches(&self) -> Vec<Option<Stretch>> {
        self.seen().clone()
    }
}

#[tokio::test(start_paused = true)]
async fn whoever_asks_for_an_answer_now_is_looked_for_everywhere() {
    let (hub, door, seen, _tasks) = following(DispatcherOptions::default());
    let _waiting = door.request(["mail"], (), Patience::Until(now() + secs(60))).unwrap();
    settle().await;
    hub.wake_announced(&"mail", Cause::Pushed);
    let waiting = door.request(["mail"], (), Patience::Now).unwrap();

    assert_eq!(waiting.await, Answer::Nothing);
    let seen = seen.stretches();
    assert!(seen[0].is_some());
    assert_eq!(seen.last(), Some(&None), "{seen:?}");
}

#[tokio::test(start_paused = true)]
async fn the_fallback_looks_everywhere_even_when_a_ring_and_a_newcomer_meet_it() {
    let (hub, door, seen, _tasks) = following(DispatcherOptions::default().fallback_interval(secs(30)));
    let _waiting = door.request(["mail"], (), Patience::Until(now() + secs(600))).unwrap();
    settle().await;
    tokio::time::advance(secs(30)).await;
    hub.wake_announced(&"mail", Cause::Pushed);
    let _newcomer = door.request(["mail"], (), Patience::Until(now() + secs(600))).unwrap();
    settle().await;

    let seen = seen.stretches();
    assert!(seen.len() >= 2 && seen[1..].contains(&None), "{seen:?}");
}

#[tokio::test(start_paused = true)]
async fn a_look_that_followed_what_it_was_told_leaves_the_dues_as_they_are() {
    let (hub, door, seen, _tasks) = following(DispatcherOptions::default().fallback_interval(secs(600)));
    let _waiting = door.request(["mail"], (), Patience::Until(now() + secs(600))).unwrap();
    settle().await;
    hub.set_due("mail", DueSource::Round, Some(secs(20)));
    hub.wake_announced(&"mail", Cause::Pushed);
    settle().await;
    let before = seen.stretches();

    tokio::time::advance(secs(21)).await;
    settle().await;

    let after = seen.stretches();
    assert_eq!(after.len(), before.len() + 1, "the due rang");
    assert_ne!(after.last(), before.last());
}
