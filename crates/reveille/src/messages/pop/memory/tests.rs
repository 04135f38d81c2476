//! The table of modes, row by row.

use super::*;

const GROUP: GroupId = GroupId(1);
const QUEUE: QueueId = QueueId(2);
const TARGET: Target = Target { queue: QUEUE, group: GROUP, partition: None };
const NOTHING: Shown = Shown { plain: None, may_have_left_ready: false, complete_in: None };
const PLAIN: Shown = Shown { plain: Some(true), ..NOTHING };
const LEFT_READY: Shown = Shown { may_have_left_ready: true, ..PLAIN };

/// What a group is in after these rounds, the queue having been searched just now.
fn mode_after(rounds: &[Shown]) -> Mode {
    let (mut memory, now) = (Memory::default(), Instant::now());
    memory.searching(&[QUEUE], now);
    for shown in rounds {
        memory.learn(GROUP, *shown);
    }
    memory.mode(TARGET, now)
}

#[test]
fn a_group_of_which_nothing_is_known_is_searched() {
    assert_eq!(mode_after(&[]), Mode::Search);
    assert_eq!(mode_after(&[NOTHING]), Mode::Search, "nobody asked whether its queue is plain");
}

#[test]
fn a_queue_that_is_not_plain_is_always_searched() {
    let delayed = Shown { plain: Some(false), ..LEFT_READY };

    assert_eq!(mode_after(&[delayed]), Mode::Search);
    assert_eq!(mode_after(&[LEFT_READY, delayed]), Mode::Search, "it was plain until now");
}

#[test]
fn a_queue_that_no_search_is_known_of_is_searched() {
    let mut memory = Memory::default();
    memory.learn(GROUP, PLAIN);

    assert_eq!(memory.mode(TARGET, Instant::now()), Mode::Search);
}

#[test]
fn what_a_round_left_ready_decides_between_backlog_and_announced() {
    assert_eq!(mode_after(&[PLAIN]), Mode::Announced);
    assert_eq!(mode_after(&[LEFT_READY]), Mode::Backlog);
    assert_eq!(mode_after(&[LEFT_READY, NOTHING]), Mode::Announced);
    assert_eq!(mode_after(&[PLAIN, Shown { may_have_left_ready: true, ..NOTHING }]), Mode::Backlog);
}

#[test]
fn a_backlog_is_searched_when_the_last_search_is_old() {
    let (mut memory, now) = (Memory::default(), Instant::now());
    memory.searching(&[QUEUE], now);
    memory.learn(GROUP, LEFT_READY);

    assert_eq!(memory.mode(TARGET, now + SEARCH_EVERY - Duration::from_millis(1)), Mode::Backlog);
    assert_eq!(memory.mode(TARGET, now + SEARCH_EVERY), Mode::Search);
}

#[test]
fn announced_partitions_are_followed_until_the_last_search_is_old_and_many_rounds_did_without() {
    let (mut memory, now) = (Memory::default(), Instant::now());
    let later = now + SEARCH_EVERY;
    memory.searching(&[QUEUE], now);
    memory.learn(GROUP, PLAIN);

    for _ in 0..ROUNDS_WITHOUT_SEARCH_MAX {
        assert_eq!(memory.mode(TARGET, later), Mode::Announced);
        memory.claiming_announced(&HashSet::from([QUEUE]));
    }

    assert_eq!(memory.mode(TARGET, now), Mode::Announced, "the last search is recent");
    assert_eq!(memory.mode(TARGET, later), Mode::Search);
    memory.searching(&[QUEUE], later);
    assert_eq!(memory.mode(TARGET, later), Mode::Announced);
}
