//! How a worker's free slots are shared among its queues.

use crate::jobs::ready::Queue;

/// Each queue's share of `want`, by its weight, in the order in which the queues are served. The
/// order is drawn, a heavier queue more often first, so that rounding up the first share is fair in
/// the long run. A share is at least one.
pub(super) fn shares(queues: &[Queue], want: usize, weight: impl Fn(&str) -> u32) -> Vec<(Queue, usize)> {
    let total: u64 = queues.iter().map(|queue| u64::from(weight(queue))).sum();
    let share = |queue: &Queue| {
        let exact = (want as u64).saturating_mul(u64::from(weight(queue))).div_ceil(total.max(1));
        usize::try_from(exact).unwrap_or(want).clamp(1, want.max(1))
    };
    let mut drawn: Vec<(f64, Queue, usize)> = queues
        .iter()
        // The smallest of draws from exponential distributions: first with a chance in proportion
        // to the weight.
        .map(|queue| {
            (-(1.0 - fastrand::f64()).ln() / f64::from(weight(queue).max(1)), Queue::clone(queue), share(queue))
        })
        .collect();
    drawn.sort_by(|one, other| one.0.total_cmp(&other.0));
    drawn.into_iter().map(|(_, queue, share)| (queue, share)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Vec<Queue> {
        names.iter().map(|name| Queue::from(*name)).collect()
    }

    #[test]
    fn one_queue_gets_everything_and_several_their_share() {
        assert_eq!(shares(&names(&["a"]), 7, |_| 3), [(Queue::from("a"), 7)]);

        let mut both = shares(&names(&["a", "b"]), 8, |queue| if queue == "a" { 3 } else { 1 });
        both.sort();
        assert_eq!(both, [(Queue::from("a"), 6), (Queue::from("b"), 2)]);
    }

    #[test]
    fn with_one_slot_the_heavier_queue_comes_first_more_often_but_not_always() {
        fastrand::seed(7);
        let first = |_| shares(&names(&["a", "b"]), 1, |queue| if queue == "a" { 9 } else { 1 }).swap_remove(0).0;
        let heavy = (0..1000).map(first).filter(|queue| &**queue == "a").count();

        assert!((850..950).contains(&heavy), "{heavy}");
    }
}
