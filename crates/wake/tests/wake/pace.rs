//! Long and watchful, as a plain struct.

use std::time::Instant;

use proptest::prelude::*;
use reveille_wake::{Link, Outcome, Pace, PaceCause, PaceCauses, PaceOptions, Pacer};

use crate::rig::{SEED_001, ms, secs};

fn proven(since: Instant) -> Link {
    Link::Proven { since }
}

fn lost(since: Instant) -> Link {
    Link::Lost { since, attempts: 0 }
}

fn because(pacer: &Pacer) -> Option<PaceCause> {
    match pacer.pace() {
        Pace::Long => None,
        Pace::Watchful { because, .. } => Some(because),
    }
}

#[test]
fn start_up_watchfulness_ends_with_the_first_echo() {
    let start = Instant::now();
    let mut pacer = Pacer::new(PaceOptions::DEFAULT, Link::Connecting { attempts: 0 }, start);
    assert_eq!(because(&pacer), Some(PaceCause::Started));
    for _ in 0..100 {
        pacer.looked(Outcome::Empty, start + secs(60));
    }
    assert_eq!(because(&pacer), Some(PaceCause::Started), "no echo, no rest");

    let change = pacer.follow(proven(start), start).unwrap();

    assert_eq!((change.from.is_watchful(), change.to), (true, Pace::Long));
}

/// Zero times any factor is zero: the watch over a lost link would be a loop without a pause.
#[test]
fn a_shortest_interval_of_zero_pauses_and_grows_all_the_same() {
    let start = Instant::now();
    let options = PaceOptions { shortest: ms(0), ..PaceOptions::DEFAULT };
    let mut pacer = Pacer::new(options, lost(start), start);
    let first = pacer.interval().unwrap();

    for _ in 0..100 {
        pacer.looked(Outcome::Empty, start);
    }

    assert!(first >= ms(1), "{first:?}");
    assert!(pacer.interval().unwrap() >= ms(250), "{:?}", pacer.interval());
}

#[test]
fn a_lost_link_is_watched_for_a_minimum_time_and_some_empty_looks() {
    let start = Instant::now();
    let mut pacer = Pacer::new(PaceOptions::DEFAULT, proven(start), start);

    assert!(pacer.follow(lost(start), start).is_some());
    pacer.follow(proven(start), start + secs(1));
    for _ in 0..50 {
        assert!(pacer.looked(Outcome::Empty, start + secs(9)).is_none(), "the minimum time is not over");
    }
    assert!(pacer.looked(Outcome::UnderFilled, start + secs(9)).is_none());
    for _ in 0..4 {
        assert!(pacer.looked(Outcome::Empty, start + secs(11)).is_none(), "not five in a row yet");
    }

    assert_eq!(pacer.looked(Outcome::Empty, start + secs(11)).unwrap().to, Pace::Long);
}

#[test]
fn while_the_link_is_lost_the_watch_goes_on() {
    let start = Instant::now();
    let mut pacer = Pacer::new(PaceOptions::DEFAULT, proven(start), start);
    pacer.follow(lost(start), start);

    for n in 0..1000 {
        pacer.looked(Outcome::Empty, start + secs(n));
    }

    assert_eq!(because(&pacer), Some(PaceCause::LinkLost));
}

#[test]
fn a_failed_look_is_watched_and_starts_the_count_again() {
    let start = Instant::now();
    let mut pacer = Pacer::new(PaceOptions::DEFAULT, proven(start), start);

    pacer.looked(Outcome::Failed, start);
    assert_eq!(because(&pacer), Some(PaceCause::LookFailed));
    for _ in 0..4 {
        pacer.looked(Outcome::Empty, start + secs(20));
    }
    pacer.looked(Outcome::Failed, start + secs(20));
    for _ in 0..5 {
        pacer.looked(Outcome::Empty, start + secs(25));
    }

    assert!(pacer.pace().is_watchful(), "the minimum time began anew");
    assert!(pacer.looked(Outcome::Empty, start + secs(30)).is_some());
}

#[test]
fn looks_that_find_work_start_the_count_again() {
    let start = Instant::now();
    let mut pacer = Pacer::new(PaceOptions::DEFAULT, proven(start), start);
    pacer.looked(Outcome::Failed, start);

    for _ in 0..10 {
        for _ in 0..4 {
            assert!(pacer.looked(Outcome::Empty, start + secs(20)).is_none());
        }
        assert!(pacer.looked(Outcome::UnderFilled, start + secs(20)).is_none(), "there is work to find");
    }

    assert!(pacer.pace().is_watchful());
}

#[test]
fn a_ring_that_nobody_took_in_time_is_watched() {
    let start = Instant::now();
    let mut pacer = Pacer::new(PaceOptions::DEFAULT, proven(start), start);

    pacer.note(PaceCause::Undelivered, start);

    assert_eq!(because(&pacer), Some(PaceCause::Undelivered));
}

/// B9: what the seed did after every hint, every timer and every fallback look, the default does
/// not.
#[test]
fn hints_timers_and_fallback_looks_are_no_reason_unless_asked_for() {
    let start = Instant::now();
    for cause in [PaceCause::Notified, PaceCause::DueCame, PaceCause::Fallback] {
        let mut ours = Pacer::new(PaceOptions::DEFAULT, proven(start), start);
        let mut seed = Pacer::new(SEED_001, proven(start), start);

        assert!(ours.note(cause, start).is_none());
        assert!(seed.note(cause, start).is_some());
    }
}

#[test]
fn the_seeds_table_is_whole() {
    use PaceCause::{DueCame, Fallback, LinkLost, LookFailed, Notified, Undelivered};
    for cause in [Notified, DueCame, Fallback, LinkLost, LookFailed, Undelivered] {
        assert!(PaceCauses::SEED_001.contains(cause), "{cause:?}");
    }
}

/// B14: two dispatchers on one thread, two paces.
#[test]
fn a_pace_belongs_to_its_dispatcher() {
    let start = Instant::now();
    let mut first = Pacer::new(PaceOptions::DEFAULT, proven(start), start);
    let second = Pacer::new(PaceOptions::DEFAULT, proven(start), start);

    first.looked(Outcome::Failed, start);

    assert!(first.pace().is_watchful());
    assert_eq!(second.pace(), Pace::Long);
}

#[test]
fn the_interval_grows_while_nothing_is_found_and_returns_with_work() {
    let start = Instant::now();
    let mut pacer = Pacer::new(PaceOptions::DEFAULT, lost(start), start);
    assert!(pacer.interval().unwrap() <= ms(55));

    for _ in 0..20 {
        pacer.looked(Outcome::Empty, start);
    }
    assert!(pacer.interval().unwrap() >= ms(450));

    pacer.looked(Outcome::Filled, start);
    assert!(pacer.interval().unwrap() <= ms(55));
}

#[test]
fn without_a_hint_source_by_choice_the_pace_is_long() {
    let start = Instant::now();
    assert_eq!(Pacer::new(PaceOptions::DEFAULT, Link::Off, start).pace(), Pace::Long);
}

fn outcome() -> impl Strategy<Value = Outcome> {
    proptest::sample::select(&Outcome::ALL[..])
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(500) })]

    #[test]
    fn intervals_stay_within_bounds(outcomes in proptest::collection::vec(outcome(), 0..100)) {
        let start = Instant::now();
        let mut pacer = Pacer::new(PaceOptions::DEFAULT, lost(start), start);
        for outcome in outcomes {
            pacer.looked(outcome, start);
            let interval = pacer.interval().expect("a lost link is watched");
            prop_assert!((ms(50)..=ms(500)).contains(&interval), "{interval:?}");
        }
    }

    /// Left only after the minimum time, with enough empty looks in a row at the end, and a link.
    #[test]
    fn the_watch_is_left_only_when_all_is_well(
        steps in proptest::collection::vec((outcome(), 0_u64..5, any::<bool>()), 1..60),
    ) {
        let start = Instant::now();
        let mut pacer = Pacer::new(PaceOptions::DEFAULT, lost(start), start);
        let (mut now, mut reason_at, mut empties, mut linked) = (start, start, 0, false);
        for (outcome, seconds, link) in steps {
            now += secs(seconds);
            if link != linked && pacer.pace().is_watchful() {
                linked = link;
                pacer.follow(if link { proven(now) } else { lost(now) }, now);
                if !link { reason_at = now; empties = 0; }
            }
            if !pacer.pace().is_watchful() { break; }
            empties = if outcome == Outcome::Empty { empties + 1 } else { 0 };
            if outcome == Outcome::Failed { reason_at = now; }
            let left = pacer.looked(outcome, now).is_some();
            prop_assert_eq!(left, linked && empties >= 5 && now - reason_at >= secs(10));
        }
    }
}
