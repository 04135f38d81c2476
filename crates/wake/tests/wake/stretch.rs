//! When a claim may search the announced places alone.

use std::sync::{Arc, Mutex, MutexGuard};

use reveille_wake::{
    Answer, Cause, Dispatcher, DispatcherOptions, DueSource, Hub, HubOptions, Link, Outcome, Patience, Round,
    RoundFailed, RoundResult, Source, Stretch, Watch,
};
use tokio::task::JoinSet;

use crate::rig::{now, proven, secs, settle};

type Key = &'static str;

fn armed_watch(link: Link) -> (Hub<Key>, Watch<Key>) {
    let (hub, _runner) = Hub::new(HubOptions::default());
    hub.set_link(link);
    let mut watch = hub.watch();
    watch.arm("mail").expect("there is room");
    (hub, watch)
}

fn claim(watch: &mut Watch<Key>, outcome: Outcome) -> Option<Stretch> {
    let stretch = watch.begin(&"mail", Cause::More).expect("it is armed").stretch;
    watch.ended(&"mail", outcome);
    stretch
}

#[tokio::test(start_paused = true)]
async fn wakes_that_announce_the_place_keep_the_stretch() {
    let (hub, mut watch) = armed_watch(proven());
    let before = claim(&mut watch, Outcome::Empty);

    hub.wake_announced(&"mail", Cause::Pushed);
    hub.wake_announced(&"mail", Cause::Notified);

    assert!(before.is_some());
    assert_eq!(claim(&mut watch, Outcome::UnderFilled), before);
}

/// Also between announced wakes, of which the first gives the claim its cause.
#[tokio::test(start_paused = true)]
async fn one_wake_that_announces_no_place_ends_the_stretch() {
    let (hub, mut watch) = armed_watch(proven());
    let before = claim(&mut watch, Outcome::Empty);

    hub.wake_announced(&"mail", Cause::Pushed);
    hub.wake(&"mail", Cause::Due);
    hub.wake_announced(&"mail", Cause::Pushed);

    assert_ne!(claim(&mut watch, Outcome::Empty), before);
}

/// The claim began before the wake, so it may have missed the work behind the wake.
#[tokio::test(start_paused = true)]
async fn a_wake_during_a_claim_ends_the_stretch_of_that_claim() {
    let (hub, mut watch) = armed_watch(proven());
    let during = watch.begin(&"mail", Cause::More).unwrap().stretch;
    hub.wake(&"mail", Cause::Due);
    watch.ended(&"mail", Outcome::Empty);

    assert_ne!(claim(&mut watch, Outcome::Empty), during);
}

#[tokio::test(start_paused = true)]
async fn waking_every_key_ends_every_stretch() {
    let (hub, mut watch) = armed_watch(proven());
    let before = claim(&mut watch, Outcome::Empty);

    hub.wake_all(Cause::PeerLost);

    assert_ne!(claim(&mut watch, Outcome::Empty), before);
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_leaves_work_ends_the_stretch_unless_it_knows_where() {
    for outcome in [Outcome::Filled, Outcome::Contended, Outcome::Failed] {
        let (_hub, mut watch) = armed_watch(proven());
        let before = claim(&mut watch, outcome);
        assert_ne!(claim(&mut watch, Outcome::Empty), before, "{outcome:?}");
    }
    for (outcome, stays) in [(Outcome::Filled, true), (Outcome::Contended, false), (Outcome::Failed, false)] {
        let (_hub, mut watch) = armed_watch(proven());
        let before = watch.begin(&"mail", Cause::More).unwrap().stretch;
        watch.ended_announced_only(&"mail", outcome);
        assert_eq!(watch.is_woken(), outcome != Outcome::Contended);
        assert_eq!(claim(&mut watch, Outcome::Empty) == before, stays, "{outcome:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn without_a_proven_link_there_is_no_stretch_and_afterwards_another() {
    let (hub, mut watch) = armed_watch(proven());
    let before = claim(&mut watch, Outcome::Empty);

    hub.set_link(Link::Connecting { attempts: 1 });
    assert_eq!(claim(&mut watch, Outcome::Empty), None);
    hub.set_link(proven());
    assert_ne!(claim(&mut watch, Outcome::Empty), before);
}

#[tokio::test(start_paused = true)]
async fn a_key_that_was_forgotten_and_armed_again_has_another_stretch() {
    let (hub, mut watch) = armed_watch(proven());
    let before = claim(&mut watch, Outcome::Empty);

    watch.disarm(&"mail");
    hub.wake_announced(&"mail", Cause::Pushed);
    watch.arm("mail").unwrap();

    assert_ne!(claim(&mut watch, Outcome::Empty), before, "no source received what was announced");
}

/// A source that reports of every round that it checked only the announced places, and remembers
/// the stretch of each.
#[derive(Clone, Default)]
struct AnnouncedOnly(Arc<Mutex<Vec<Option<Stretch>>>>);

impl Source for AnnouncedOnly {
    type Key = Key;
    type Request = ();
    type Lease = ();

    async fn claim(&self, round: Round<Key, ()>) -> Result<RoundResult<Key, ()>, RoundFailed> {
        let stretch = round.keys[0].stretch;
        self.seen().push(stretch);
        Ok(RoundResult { announced_only: vec!["mail"], ..RoundResult::default() })
    }

    async fn release(&self, _leases: Vec<()>) {}
}

/// A hub, a handle and the source of a running dispatcher, and its tasks.
fn checking_announced_only(
    options: DispatcherOptions,
) -> (Hub<Key>, reveille_wake::DispatcherHandle<AnnouncedOnly>, AnnouncedOnly, JoinSet<()>) {
    let (hub, runner) = Hub::new(HubOptions::default());
    hub.set_link(proven());
    let seen = AnnouncedOnly::default();
    let (dispatcher, handle) = Dispatcher::new(&hub, seen.clone(), options);
    let mut tasks = JoinSet::new();
    tasks.spawn(runner.run(std::future::pending()));
    tasks.spawn(dispatcher.run(std::future::pending()));
    (hub, handle, seen, tasks)
}

impl AnnouncedOnly {
    fn seen(&self) -> MutexGuard<'_, Vec<Option<Stretch>>> {
        self.0.lock().expect("no test panics in here")
    }

    fn stretches(&self) -> Vec<Option<Stretch>> {
        self.seen().clone()
    }
}

#[tokio::test(start_paused = true)]
async fn everything_is_searched_for_a_demand_that_wants_an_answer_now() {
    let (hub, handle, seen, _tasks) = checking_announced_only(DispatcherOptions::default());
    let _waiting = handle.request(["mail"], (), Patience::Until(now() + secs(60))).unwrap();
    settle().await;
    hub.wake_announced(&"mail", Cause::Pushed);
    let ticket = handle.request(["mail"], (), Patience::Now).unwrap();

    assert_eq!(ticket.await, Answer::Nothing);
    let seen = seen.stretches();
    assert!(seen[0].is_some());
    assert_eq!(seen.last(), Some(&None), "{seen:?}");
}

#[tokio::test(start_paused = true)]
async fn the_fallback_round_searches_everything_even_when_a_wake_and_a_newcomer_meet_it() {
    let (hub, handle, seen, _tasks) = checking_announced_only(DispatcherOptions::default().fallback_interval(secs(30)));
    let _waiting = handle.request(["mail"], (), Patience::Until(now() + secs(600))).unwrap();
    settle().await;
    tokio::time::advance(secs(30)).await;
    hub.wake_announced(&"mail", Cause::Pushed);
    let _newcomer = handle.request(["mail"], (), Patience::Until(now() + secs(600))).unwrap();
    settle().await;

    let seen = seen.stretches();
    assert!(seen.len() >= 2 && seen[1..].contains(&None), "{seen:?}");
}

#[tokio::test(start_paused = true)]
async fn a_round_that_followed_announcements_leaves_the_due_times_as_they_are() {
    let (hub, handle, seen, _tasks) =
        checking_announced_only(DispatcherOptions::default().fallback_interval(secs(600)));
    let _waiting = handle.request(["mail"], (), Patience::Until(now() + secs(600))).unwrap();
    settle().await;
    hub.set_due("mail", DueSource::Round, Some(secs(20)));
    hub.wake_announced(&"mail", Cause::Pushed);
    settle().await;
    let before = seen.stretches();

    tokio::time::advance(secs(21)).await;
    settle().await;

    let after = seen.stretches();
    assert_eq!(after.len(), before.len() + 1, "the due time woke the key");
    assert_ne!(after.last(), before.last());
}
