//! The set of due times, as a plain struct.

use std::time::{Duration, Instant};

use proptest::prelude::*;
use reveille_wake::{DueSource, Dues, Fired};

use crate::rig::secs;

const SOURCES: [DueSource; 4] = [DueSource::Round, DueSource::Heartbeat, DueSource::Announced, DueSource::Lease];

/// B4: no timer after the first was ever set.
#[test]
fn every_timer_works_not_only_the_first() {
    let start = Instant::now();
    let mut dues = Dues::new(100);

    for n in 1..=5 {
        dues.add("mail", DueSource::Announced, start + secs(n));
        assert_eq!(dues.next(), Some(start + secs(n)));
        assert_eq!(dues.take(start + secs(n)), [Fired::Key("mail", DueSource::Announced)]);
        assert_eq!(dues.next(), None);
    }
}

/// B5: of two timers the later was forgotten.
#[test]
fn the_later_of_two_timers_is_kept() {
    let start = Instant::now();
    let mut dues = Dues::new(100);
    dues.add("mail", DueSource::Announced, start + secs(5));
    dues.add("mail", DueSource::Announced, start + secs(2));

    assert_eq!(dues.take(start + secs(2)).len(), 1);

    assert_eq!(dues.next(), Some(start + secs(5)));
}

/// B5: a source replaces only its own due time of one key.
#[test]
fn replacing_one_leaves_the_others() {
    let start = Instant::now();
    let mut dues = Dues::new(100);
    dues.add("mail", DueSource::Announced, start + secs(1));
    dues.replace("mail", DueSource::Round, Some(start + secs(2)));
    dues.replace("letters", DueSource::Round, Some(start + secs(3)));

    dues.replace("mail", DueSource::Round, None);

    assert_eq!(dues.len(), 2);
    assert_eq!(dues.next(), Some(start + secs(1)));
}

#[test]
fn a_due_time_that_does_not_fit_wakes_every_key() {
    let start = Instant::now();
    let mut dues = Dues::new(2);
    for n in [30, 10, 20, 40] {
        dues.add(n, DueSource::Announced, start + secs(n));
    }

    assert_eq!(dues.len(), 2);
    let fired = dues.take(start + secs(60));

    let expected = [Fired::Key(10, DueSource::Announced), Fired::Key(20, DueSource::Announced), Fired::Everything];
    assert_eq!(fired, expected);
    assert!(dues.is_empty());
}

#[derive(Clone, Debug)]
enum Step {
    Add(u8, usize, u64),
    Replace(u8, usize, Option<u64>),
    Take(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let (key, source, at) = (0_u8..4, 0_usize..4, 0_u64..1000);
    prop_oneof![
        (key.clone(), source.clone(), at.clone()).prop_map(|(key, source, at)| Step::Add(key, source, at)),
        (key, source, proptest::option::of(at.clone())).prop_map(|(key, source, at)| Step::Replace(key, source, at)),
        at.prop_map(Step::Take),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(500) })]

    /// Against a plain list: nothing early, nothing lost, the next is the earliest.
    #[test]
    fn due_times_are_a_sorted_list(steps in proptest::collection::vec(step(), 1..80)) {
        let start = Instant::now();
        let at = |ms: u64| start + Duration::from_millis(ms);
        let mut dues = Dues::new(1000);
        let mut list: Vec<(u64, u8, usize)> = Vec::new();
        for step in steps {
            match step {
                Step::Add(key, source, ms) => {
                    dues.add(key, SOURCES[source], at(ms));
                    if !list.contains(&(ms, key, source)) { list.push((ms, key, source)); }
                }
                Step::Replace(key, source, ms) => {
                    dues.replace(key, SOURCES[source], ms.map(at));
                    list.retain(|due| (due.1, due.2) != (key, source));
                    list.extend(ms.map(|ms| (ms, key, source)));
                }
                Step::Take(now) => {
                    let fired = dues.take(at(now));
                    let (mut due, rest): (Vec<_>, Vec<_>) = list.into_iter().partition(|due| due.0 <= now);
                    list = rest;
                    due.sort_by_key(|due| due.0);
                    prop_assert_eq!(fired.len(), due.len());
                    for fired in fired {
                        let Fired::Key(key, source) = fired else { panic!("there was room") };
                        let known = due.iter().position(|due| (due.1, SOURCES[due.2]) == (key, source));
                        due.remove(known.expect("it was put in"));
                    }
                }
            }
            prop_assert_eq!(dues.next(), list.iter().map(|due| at(due.0)).min());
            prop_assert_eq!(dues.len(), list.len());
        }
    }

    /// However small the limit: at each instant that was put in, its key or every key is woken.
    #[test]
    fn a_bound_makes_nothing_late(instants in proptest::collection::vec(0_u64..1000, 1..40), limit in 1_usize..5) {
        let start = Instant::now();
        let mut dues = Dues::new(limit);
        for (key, ms) in instants.iter().enumerate() {
            dues.add(key, DueSource::Announced, start + Duration::from_millis(*ms));
            prop_assert!(dues.len() <= limit);
        }
        let mut sorted: Vec<_> = instants.iter().enumerate().map(|(key, ms)| (*ms, key)).collect();
        sorted.sort_unstable();
        let mut everything = false;
        for (ms, key) in sorted {
            let fired = dues.take(start + Duration::from_millis(ms));
            let own = fired.contains(&Fired::Key(key, DueSource::Announced));
            everything |= fired.contains(&Fired::Everything);
            // Equal instants fire together, with the first of them.
            prop_assert!(own || everything || instants.iter().filter(|at| **at == ms).count() > 1);
        }
    }
}
