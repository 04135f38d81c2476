//! Each broken promise, in the smallest history that breaks it, and in its own column alone.

use super::{Column, check};
use crate::clock::{Micros, seconds};
use crate::history::{Count, Edge, Event, Key, Keys, Outcome, Phase, Place, Promise, Record, Status};

const LEASE: Micros = seconds(3);
const QUEUE: &str = "orders";
const GROUP: &str = "billing";

/// A history in the making: every call moves the clock on by a millisecond.
struct Script {
    now: Micros,
    op: u64,
    records: Vec<Record>,
}

impl Script {
    fn new(promise: Promise) -> Self {
        let mut script = Self { now: seconds(1), op: 0, records: Vec::new() };
        script.group(GROUP, promise);
        script
    }

    fn leased() -> Self {
        Self::new(Promise::Leased)
    }

    fn group(&mut self, group: &str, promise: Promise) {
        let (queue, group) = (QUEUE.to_owned(), group.to_owned());
        self.note(Event::Group { queue, group, promise, lease: LEASE });
    }

    fn note(&mut self, event: Event) {
        self.now += 1000;
        self.records.push(Record { at: self.now, by: 1, event });
    }

    fn wait(&mut self, time: Micros) -> &mut Self {
        self.now += time;
        self
    }

    fn push(&mut self, key: Key, outcome: Outcome) -> &mut Self {
        self.op += 1;
        let keys = Keys::one(key);
        self.note(Event::Push { op: self.op, place: place(), keys: keys.clone() });
        self.note(Event::Pushed { op: self.op, keys, outcome });
        self
    }

    fn pushed(&mut self, keys: &[Key]) -> &mut Self {
        for key in keys {
            self.push(*key, Outcome::Ok);
        }
        self
    }

    fn delivered_to(&mut self, group: &str, lease: &str, keys: &[Key]) -> &mut Self {
        let (began, group, lease) = (self.now + 1, group.to_owned(), lease.to_owned());
        let keys = keys.iter().copied().collect();
        self.note(Event::Delivered { began, place: place(), group, lease, attempt: 1, keys });
        self
    }

    fn delivered(&mut self, lease: &str, keys: &[Key]) -> &mut Self {
        self.delivered_to(GROUP, lease, keys)
    }

    fn settling(&mut self, lease: &str, keys: &[Key], status: Status) -> Keys {
        self.op += 1;
        let keys: Keys = keys.iter().copied().collect();
        let (group, lease) = (GROUP.to_owned(), lease.to_owned());
        self.note(Event::Settle { op: self.op, place: place(), group, lease, keys: keys.clone(), status });
        keys
    }

    fn settled(&mut self, lease: &str, keys: &[Key], (status, outcome): (Status, Outcome)) -> &mut Self {
        let keys = self.settling(lease, keys, status);
        self.note(Event::Settled { op: self.op, keys, outcome });
        self
    }

    fn acked(&mut self, lease: &str, keys: &[Key]) -> &mut Self {
        self.settled(lease, keys, (Status::Completed, Outcome::Ok))
    }

    fn sought(&mut self) -> &mut Self {
        let (began, outcome) = (self.now, Outcome::Ok);
        self.note(Event::Sought { began, queue: QUEUE.to_owned(), group: GROUP.to_owned(), outcome });
        self
    }

    fn fault(&mut self, kind: &str) -> &mut Self {
        for edge in [Edge::Begin, Edge::End] {
            self.note(Event::Fault { kind: kind.to_owned(), target: "it".to_owned(), edge });
        }
        self
    }

    /// The columns that are not zero, with their counts.
    fn columns(&self) -> Vec<(Column, usize)> {
        let verdict = check(&self.records);
        let counts = Column::ALL.into_iter().map(|column| (column, verdict.count(column)));
        counts.filter(|(_, count)| *count > 0).collect()
    }

    fn is_clean(&self) {
        assert_eq!(self.columns(), []);
    }

    fn fails_by(&self, column: Column) {
        assert_eq!(self.columns(), [(column, 1)]);
    }
}

fn place() -> Place {
    Place::new(QUEUE, "p0")
}

#[test]
fn a_message_that_was_pushed_delivered_and_acked_is_no_finding() {
    Script::leased().pushed(&[1, 2]).delivered("a", &[1, 2]).acked("a", &[1, 2]).is_clean();
}

#[test]
fn a_stored_message_that_never_came_is_lost() {
    Script::leased().pushed(&[1, 2]).delivered("a", &[2]).acked("a", &[2]).fails_by(Column::Lost);
}

#[test]
fn a_message_whose_ack_was_refused_and_that_never_came_again_is_lost() {
    let mut script = Script::leased();
    script.pushed(&[1]).delivered("a", &[1]).settled("a", &[1], (Status::Completed, Outcome::Refused));
    script.fails_by(Column::Lost);
}

#[test]
fn a_push_without_an_answer_may_come_or_not() {
    Script::leased().push(1, Outcome::Unknown).is_clean();
    Script::leased().push(1, Outcome::Unknown).delivered("a", &[1]).acked("a", &[1]).is_clean();
}

#[test]
fn an_ack_of_a_consumer_that_was_killed_may_have_had_its_effect() {
    let mut script = Script::leased();
    script.pushed(&[1]).delivered("a", &[1]).settling("a", &[1], Status::Completed);
    script.is_clean();
}

#[test]
fn a_message_that_was_never_pushed_is_unexpected() {
    Script::leased().delivered("a", &[7]).acked("a", &[7]).fails_by(Column::Unexpected);
}

#[test]
fn a_message_whose_transaction_was_rolled_back_is_unexpected() {
    let mut script = Script::leased();
    script.push(1, Outcome::Refused).delivered("a", &[1]).acked("a", &[1]);
    script.fails_by(Column::Unexpected);
}

#[test]
fn a_dead_letter_that_was_never_failed_is_unexpected() {
    let mut script = Script::leased();
    script.pushed(&[1]);
    script.note(Event::Buried { queue: QUEUE.to_owned(), group: GROUP.to_owned(), key: 1 });
    script.fails_by(Column::Unexpected);
}

#[test]
fn a_dead_letter_that_was_failed_is_settled() {
    let mut script = Script::leased();
    script.pushed(&[1]).delivered("a", &[1]).settled("a", &[1], (Status::Failed, Outcome::Ok));
    script.note(Event::Buried { queue: QUEUE.to_owned(), group: GROUP.to_owned(), key: 1 });
    script.is_clean();
}

#[test]
fn two_first_successes_are_one_too_many() {
    let mut script = Script::leased();
    script.pushed(&[1]).delivered("a", &[1]).wait(LEASE).delivered("b", &[1]).acked("b", &[1]);
    // The fence held for the later lease, and then the same lease was a first success again.
    script.acked("b", &[1]).fails_by(Column::DoubleSuccess);
}

#[test]
fn a_success_that_is_reported_again_is_one_success() {
    let mut script = Script::leased();
    script.pushed(&[1]).delivered("a", &[1]).acked("a", &[1]);
    script.settled("a", &[1], (Status::Completed, Outcome::Again)).is_clean();
}

#[test]
fn a_message_that_is_popped_twice_by_pops_that_settle_is_a_double_success() {
    let mut script = Script::new(Promise::AutoAck);
    script.pushed(&[1]).delivered("", &[1]).delivered("", &[1]).fails_by(Column::DoubleSuccess);
}

#[test]
fn an_ack_after_another_consumer_got_the_next_lease_is_stale() {
    let mut script = Script::leased();
    script.pushed(&[1]).delivered("a", &[1]).wait(LEASE).delivered("b", &[1]).acked("a", &[1]);
    script.fails_by(Column::StaleSuccess);
}

#[test]
fn a_late_ack_that_is_refused_is_as_it_should_be() {
    let mut script = Script::leased();
    script.pushed(&[1]).delivered("a", &[1]).wait(LEASE).delivered("b", &[1]).acked("b", &[1]);
    script.settled("a", &[1], (Status::Completed, Outcome::Refused)).is_clean();
}

#[test]
fn an_answer_that_was_read_late_is_no_later_lease() {
    // A process that was stopped reads, after its lease has ended, what was claimed for it long
    // before.
    let mut script = Script::leased();
    script.pushed(&[1]);
    let began = script.now;
    script.wait(LEASE).delivered("b", &[1]);
    let (group, lease, keys) = (GROUP.to_owned(), "a".to_owned(), Keys::one(1));
    script.note(Event::Delivered { began, place: place(), group, lease, attempt: 1, keys });
    script.acked("b", &[1]).is_clean();
}

#[test]
fn an_ack_under_a_lease_from_before_a_seek_is_stale() {
    let mut script = Script::new(Promise::Sought);
    script.pushed(&[1]).delivered("a", &[1]).sought().acked("a", &[1]).fails_by(Column::StaleSuccess);
}

#[test]
fn a_seek_explains_that_everything_comes_and_is_done_again() {
    let mut script = Script::new(Promise::Sought);
    script.pushed(&[1, 2]).delivered("a", &[1, 2]).acked("a", &[1, 2]).sought();
    script.delivered("b", &[1, 2]).acked("b", &[1, 2]).is_clean();
}

#[test]
fn a_later_push_that_comes_first_is_out_of_order() {
    Script::leased().pushed(&[1, 2]).delivered("a", &[2, 1]).acked("a", &[2, 1]).fails_by(Column::OutOfOrder);
}

#[test]
fn two_groups_that_see_two_orders_are_out_of_order() {
    let mut script = Script::leased();
    // Pushed by two at once, so that either order is right, but only one of them.
    script.note(Event::Push { op: 90, place: place(), keys: Keys::one(1) });
    script.note(Event::Push { op: 91, place: place(), keys: Keys::one(2) });
    script.note(Event::Pushed { op: 90, keys: Keys::one(1), outcome: Outcome::Ok });
    script.note(Event::Pushed { op: 91, keys: Keys::one(2), outcome: Outcome::Ok });
    script.delivered("a", &[2, 1]).acked("a", &[2, 1]);
    script.group("shipping", Promise::AutoAck);
    script.delivered_to("shipping", "", &[1, 2]);
    script.fails_by(Column::OutOfOrder);
}

#[test]
fn a_message_that_still_waits_at_the_end_is_stuck() {
    let mut script = Script::leased();
    script.pushed(&[1]);
    script.note(Event::Left { place: place(), group: GROUP.to_owned(), pending: 1, leased: false });
    script.fails_by(Column::Stuck);
}

#[test]
fn a_lease_over_nothing_is_an_orphan() {
    let mut script = Script::leased();
    script.pushed(&[1]).delivered("a", &[1]).acked("a", &[1]);
    script.note(Event::Left { place: place(), group: GROUP.to_owned(), pending: 0, leased: true });
    script.fails_by(Column::OrphanLease);
}

#[test]
fn a_wake_that_takes_longer_than_a_heartbeat_was_missed() {
    let mut script = Script::leased();
    script.note(Event::Phase { phase: Phase::Calm });
    script.pushed(&[1]).wait(seconds(20)).delivered("a", &[1]).acked("a", &[1]);
    script.fails_by(Column::MissedWake);
}

#[test]
fn a_delivery_while_another_holds_the_message_is_unexplained() {
    let mut script = Script::leased();
    script.pushed(&[1]).delivered("a", &[1]).delivered("b", &[1]).acked("b", &[1]);
    script.fails_by(Column::Unexplained);
}

#[test]
fn a_delivery_after_the_ack_was_answered_is_unexplained() {
    let mut script = Script::leased();
    script.pushed(&[1]).delivered("a", &[1]).acked("a", &[1]).wait(LEASE * 2).delivered("b", &[1]);
    script.fails_by(Column::Unexplained);
}

#[test]
fn a_nack_the_end_of_a_lease_and_a_crash_explain_a_delivery() {
    let mut nacked = Script::leased();
    nacked.pushed(&[1, 2]).delivered("a", &[1, 2]).settled("a", &[1], (Status::Retry, Outcome::Ok));
    nacked.delivered("b", &[1, 2]).acked("b", &[1, 2]).is_clean();

    let mut ended = Script::leased();
    ended.pushed(&[1]).delivered("a", &[1]).wait(LEASE).delivered("b", &[1]).acked("b", &[1]).is_clean();

    let mut crashed = Script::leased();
    crashed.pushed(&[1]).delivered("a", &[1]).fault("kill-postmaster");
    crashed.delivered("b", &[1]).acked("b", &[1]).is_clean();
    assert_eq!(check(&crashed.records).counted.redelivered.claim_forgotten, 1);
}

#[test]
fn an_effect_that_is_missing_is_lost_and_one_that_is_there_twice_is_a_double_success() {
    let with = |times: Option<u32>| {
        let mut script = Script::new(Promise::Effects);
        script.pushed(&[1]);
        if let Some(times) = times {
            script.note(Event::Effect { queue: QUEUE.to_owned(), key: 1, times });
        }
        script
    };

    with(Some(1)).is_clean();
    with(None).fails_by(Column::Lost);
    with(Some(2)).fails_by(Column::DoubleSuccess);
}

#[test]
fn an_effect_of_what_was_undone_is_unexpected() {
    let mut script = Script::new(Promise::Effects);
    script.push(1, Outcome::Refused);
    script.note(Event::Effect { queue: QUEUE.to_owned(), key: 1, times: 1 });
    script.fails_by(Column::Unexpected);
}

#[test]
fn deadlocks_repairs_and_panics_are_findings() {
    let counted =
        [(Count::Deadlocks, Column::Deadlock), (Count::Repairs, Column::Repaired), (Count::Panics, Column::Panicked)];
    for (what, column) in counted {
        let mut script = Script::leased();
        script.note(Event::Counted { what, count: 1 });
        script.fails_by(column);
    }
}
