//! The poll mode, as a plain struct.

use std::time::Instant;

use proptest::prelude::*;
use reveille_wake::{FallbackCause, FallbackCauses, Link, Outcome, PollMode, PollModeOptions, PollModeState};

use crate::rig::{SEED_001, ms, secs};

fn proven(since: Instant) -> Link {
    Link::Proven { since }
}

fn lost(since: Instant) -> Link {
    Link::Lost { since, attempts: 0 }
}

fn because(poll_mode: &PollModeState) -> Option<FallbackCause> {
    match poll_mode.mode() {
        PollMode::Long => None,
        PollMode::Fallback { because, .. } => Some(because),
    }
}

#[test]
fn fallback_polling_at_start_up_ends_with_the_first_echo() {
    let start = Instant::now();
    let mut poll_mode = PollModeState::new(PollModeOptions::DEFAULT, Link::Connecting { attempts: 0 }, start);
    assert_eq!(because(&poll_mode), Some(FallbackCause::Started));
    for _ in 0..100 {
        poll_mode.round_ended(Outcome::Empty, start + secs(60));
    }
    assert_eq!(because(&poll_mode), Some(FallbackCause::Started), "no echo, no rest");

    let change = poll_mode.follow(proven(start), start).unwrap();

    assert_eq!((change.from.is_fallback(), change.to), (true, PollMode::Long));
}

/// Zero times any factor is zero: polling would be a loop without a pause.
#[test]
fn a_shortest_interval_of_zero_pauses_and_grows_all_the_same() {
    let start = Instant::now();
    let options = PollModeOptions { shortest: ms(0), ..PollModeOptions::DEFAULT };
    let mut poll_mode = PollModeState::new(options, lost(start), start);
    let first = poll_mode.interval().unwrap();

    for _ in 0..100 {
        poll_mode.round_ended(Outcome::Empty, start);
    }

    assert!(first >= ms(1), "{first:?}");
    assert!(poll_mode.interval().unwrap() >= ms(250), "{:?}", poll_mode.interval());
}

#[test]
fn a_lost_link_is_polled_for_a_minimum_time_and_some_empty_rounds() {
    let start = Instant::now();
    let mut poll_mode = PollModeState::new(PollModeOptions::DEFAULT, proven(start), start);

    assert!(poll_mode.follow(lost(start), start).is_some());
    poll_mode.follow(proven(start), start + secs(1));
    for _ in 0..50 {
        assert!(poll_mode.round_ended(Outcome::Empty, start + secs(9)).is_none(), "the minimum time is not over");
    }
    assert!(poll_mode.round_ended(Outcome::UnderFilled, start + secs(9)).is_none());
    for _ in 0..4 {
        assert!(poll_mode.round_ended(Outcome::Empty, start + secs(11)).is_none(), "not five in a row yet");
    }

    assert_eq!(poll_mode.round_ended(Outcome::Empty, start + secs(11)).unwrap().to, PollMode::Long);
}

#[test]
fn while_the_link_is_lost_fallback_polling_goes_on() {
    let start = Instant::now();
    let mut poll_mode = PollModeState::new(PollModeOptions::DEFAULT, proven(start), start);
    poll_mode.follow(lost(start), start);

    for n in 0..1000 {
        poll_mode.round_ended(Outcome::Empty, start + secs(n));
    }

    assert_eq!(because(&poll_mode), Some(FallbackCause::LinkLost));
}

#[test]
fn a_failed_round_begins_fallback_polling_and_starts_the_count_again() {
    let start = Instant::now();
    let mut poll_mode = PollModeState::new(PollModeOptions::DEFAULT, proven(start), start);

    poll_mode.round_ended(Outcome::Failed, start);
    assert_eq!(because(&poll_mode), Some(FallbackCause::RoundFailed));
    for _ in 0..4 {
        poll_mode.round_ended(Outcome::Empty, start + secs(20));
    }
    poll_mode.round_ended(Outcome::Failed, start + secs(20));
    for _ in 0..5 {
        poll_mode.round_ended(Outcome::Empty, start + secs(25));
    }

    assert!(poll_mode.mode().is_fallback(), "the minimum time began again");
    assert!(poll_mode.round_ended(Outcome::Empty, start + secs(30)).is_some());
}

#[test]
fn rounds_that_find_work_start_the_count_again() {
    let start = Instant::now();
    let mut poll_mode = PollModeState::new(PollModeOptions::DEFAULT, proven(start), start);
    poll_mode.round_ended(Outcome::Failed, start);

    for _ in 0..10 {
        for _ in 0..4 {
            assert!(poll_mode.round_ended(Outcome::Empty, start + secs(20)).is_none());
        }
        assert!(poll_mode.round_ended(Outcome::UnderFilled, start + secs(20)).is_none(), "there is work to find");
    }

    assert!(poll_mode.mode().is_fallback());
}

#[test]
fn a_wake_that_was_not_claimed_for_in_time_begins_fallback_polling() {
    let start = Instant::now();
    let mut poll_mode = PollModeState::new(PollModeOptions::DEFAULT, proven(start), start);

    poll_mode.note(FallbackCause::Undelivered, start);

    assert_eq!(because(&poll_mode), Some(FallbackCause::Undelivered));
}

/// B9: with the default set of causes a process is idle between hints.
#[test]
fn hints_timers_and_fallback_rounds_are_no_reason_unless_chosen() {
    let start = Instant::now();
    for cause in [FallbackCause::Notified, FallbackCause::DueCame, FallbackCause::Fallback] {
        let mut default = PollModeState::new(PollModeOptions::DEFAULT, proven(start), start);
        let mut chosen = PollModeState::new(SEED_001, proven(start), start);

        assert!(default.note(cause, start).is_none());
        assert!(chosen.note(cause, start).is_some());
    }
}

#[test]
fn the_earlier_set_of_causes_is_whole() {
    use FallbackCause::{DueCame, Fallback, LinkLost, Notified, RoundFailed, Undelivered};
    for cause in [Notified, DueCame, Fallback, LinkLost, RoundFailed, Undelivered] {
        assert!(FallbackCauses::SEED_001.contains(cause), "{cause:?}");
    }
}

/// B14: two dispatchers on one thread have a poll mode each.
#[test]
fn a_poll_mode_belongs_to_its_dispatcher() {
    let start = Instant::now();
    let mut first = PollModeState::new(PollModeOptions::DEFAULT, proven(start), start);
    let second = PollModeState::new(PollModeOptions::DEFAULT, proven(start), start);

    first.round_ended(Outcome::Failed, start);

    assert!(first.mode().is_fallback());
    assert_eq!(second.mode(), PollMode::Long);
}

#[test]
fn the_interval_grows_while_nothing_is_found_and_returns_with_work() {
    let start = Instant::now();
    let mut poll_mode = PollModeState::new(PollModeOptions::DEFAULT, lost(start), start);
    assert!(poll_mode.interval().unwrap() <= ms(55));

    for _ in 0..20 {
        poll_mode.round_ended(Outcome::Empty, start);
    }
    assert!(poll_mode.interval().unwrap() >= ms(450));

    poll_mode.round_ended(Outcome::Filled, start);
    assert!(poll_mode.interval().unwrap() <= ms(55));
}

#[test]
fn without_a_hint_source_by_choice_there_is_no_fallback_polling() {
    let start = Instant::now();
    assert_eq!(PollModeState::new(PollModeOptions::DEFAULT, Link::Off, start).mode(), PollMode::Long);
}

fn outcome() -> impl Strategy<Value = Outcome> {
    proptest::sample::select(&Outcome::ALL[..])
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(500) })]

    #[test]
    fn intervals_stay_within_bounds(outcomes in proptest::collection::vec(outcome(), 0..100)) {
        let start = Instant::now();
        let mut poll_mode = PollModeState::new(PollModeOptions::DEFAULT, lost(start), start);
        for outcome in outcomes {
            poll_mode.round_ended(outcome, start);
            let interval = poll_mode.interval().expect("a lost link is polled");
            prop_assert!((ms(50)..=ms(500)).contains(&interval), "{interval:?}");
        }
    }

    /// It ends only after the minimum time, after enough empty rounds in a row, and with a link.
    #[test]
    fn fallback_polling_ends_only_when_all_is_well(
        steps in proptest::collection::vec((outcome(), 0_u64..5, any::<bool>()), 1..60),
    ) {
        let start = Instant::now();
        let mut poll_mode = PollModeState::new(PollModeOptions::DEFAULT, lost(start), start);
        let (mut now, mut reason_at, mut empties, mut linked) = (start, start, 0, false);
        for (outcome, seconds, link) in steps {
            now += secs(seconds);
            if link != linked && poll_mode.mode().is_fallback() {
                linked = link;
                poll_mode.follow(if link { proven(now) } else { lost(now) }, now);
                if !link { reason_at = now; empties = 0; }
            }
            if !poll_mode.mode().is_fallback() { break; }
            empties = if outcome == Outcome::Empty { empties + 1 } else { 0 };
            if outcome == Outcome::Failed { reason_at = now; }
            let left = poll_mode.round_ended(outcome, now).is_some();
            prop_assert_eq!(left, linked && empties >= 5 && now - reason_at >= secs(10));
        }
    }
}
