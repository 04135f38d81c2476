//! The health of the hint source, as a plain struct.

use std::time::Instant;

use reveille_wake::{Link, LinkState};

use crate::rig::secs;

#[test]
fn only_an_echo_proves_a_link() {
    let start = Instant::now();
    let mut state = LinkState::new(secs(2));
    state.probed(start);
    assert_eq!(state.link(), Link::Connecting { attempts: 0 });

    assert_eq!(state.echoed(start), Link::Proven { since: start });
}

#[test]
fn a_silent_link_is_noticed_however_often_it_is_probed() {
    let start = Instant::now();
    let mut state = LinkState::new(secs(2));
    state.probed(start);
    state.echoed(start);

    state.probed(start + secs(12));
    state.probed(start + secs(13));
    assert_eq!(state.check_at(), Some(start + secs(14)));
    assert!(state.check(start + secs(13)).is_proven());

    assert_eq!(state.check(start + secs(14)), Link::Stalled { since: start + secs(14) });
}

#[test]
fn a_late_echo_proves_it_again() {
    let start = Instant::now();
    let mut state = LinkState::new(secs(2));
    state.echoed(start);
    state.probed(start);
    state.check(start + secs(2));

    assert_eq!(state.echoed(start + secs(3)), Link::Proven { since: start + secs(3) });
}

#[test]
fn a_lost_link_counts_its_attempts_from_the_loss() {
    let start = Instant::now();
    let mut state = LinkState::new(secs(2));
    state.attempt_failed(start);
    assert_eq!(state.link(), Link::Connecting { attempts: 1 });
    state.echoed(start);

    state.lost(start + secs(5));
    state.attempt_failed(start + secs(6));
    state.attempt_failed(start + secs(7));

    assert_eq!(state.link(), Link::Lost { since: start + secs(5), attempts: 2 });
}
