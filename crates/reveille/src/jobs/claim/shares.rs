//! How a worker's free slots are shared among its queues, and what a claim found in each.

use std::sync::Arc;

use crate::jobs::ready::Queue;

/// How many jobs to claim from a queue at most.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Quota {
    pub(super) queue: Queue,
    pub(super) most: usize,
}

/// Each queue's share of `want`, by its weight, in the order in which the queues are served. The
/// order is drawn, a heavier queue more often first, so that rounding up the first share is fair in
/// the long run. A share is at least one.
pub(super) fn shares(queues: &[Queue], want: usize, weight: impl Fn(&str) -> u32) -> Vec<Quota> {
    let total: u64 = queues.iter().map(|queue| u64::from(weight(queue))).sum();
    let share = |queue: &Queue| {
        let exact = (want as u64).saturating_mul(u64::from(weight(queue))).div_ceil(total.max(1));
        usize::try_from(exact).unwrap_or(want).clamp(1, want.max(1))
    };
    let mut drawn: Vec<(f64, Quota)> = queues
        .iter()
        // The smallest of draws from exponential distributions: first with a chance in proportion
        // to the weight.
        .map(|queue| {
            let quota = Quota { queue: Queue::clone(queue), most: share(queue) };
            (-(1.0 - fastrand::f64()).ln() / f64::from(weight(queue).max(1)), quota)
        })
        .collect();
    drawn.sort_by(|one, other| one.0.total_cmp(&other.0));
    drawn.into_iter().map(|(_, quota)| quota).collect()
}

/// How many jobs a claim found in each queue, in the order of its quotas. Jobs that it ended count.
pub(super) struct Found<'q> {
    quotas: &'q [Quota],
    counts: Vec<usize>,
}

impl<'q> Found<'q> {
    pub(super) fn nothing(quotas: &'q [Quota]) -> Self {
        Self { quotas, counts: vec![0; quotas.len()] }
    }

    /// Counts one job of this queue; `None` for a queue without a quota.
    pub(super) fn count(&mut self, name: &str) -> Option<&'q Queue> {
        let index = self.quotas.iter().position(|quota| &*quota.queue == name)?;
        self.counts[index] += 1;
        Some(&self.quotas[index].queue)
    }

    pub(super) fn total(&self) -> usize {
        self.counts.iter().sum()
    }

    /// The queues in which something was found.
    pub(super) fn queues(&self) -> impl Iterator<Item = &'q Queue> {
        self.quotas.iter().zip(&self.counts).filter(|(_, count)| **count > 0).map(|(quota, _)| &quota.queue)
    }

    /// The queues with as many jobs as their quota, which may have more; and those with fewer,
    /// which have no more for now.
    pub(super) fn filled_and_short(&self) -> (Vec<Queue>, Vec<Queue>) {
        let (filled, short): (Vec<_>, Vec<_>) =
            self.quotas.iter().zip(&self.counts).partition(|(quota, count)| **count >= quota.most);
        let queues =
            |some: Vec<(&Quota, &usize)>| some.into_iter().map(|(quota, _)| Arc::clone(&quota.queue)).collect();
        (queues(filled), queues(short))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Vec<Queue> {
        names.iter().map(|name| Queue::from(*name)).collect()
    }

    fn quota(queue: &str, most: usize) -> Quota {
        Quota { queue: Queue::from(queue), most }
    }

    #[test]
    fn one_queue_gets_everything_and_several_their_share() {
        assert_eq!(shares(&names(&["a"]), 7, |_| 3), [quota("a", 7)]);

        let mut both = shares(&names(&["a", "b"]), 8, |queue| if queue == "a" { 3 } else { 1 });
        both.sort();
        assert_eq!(both, [quota("a", 6), quota("b", 2)]);
    }

    #[test]
    fn with_one_slot_the_heavier_queue_comes_first_more_often_but_not_always() {
        fastrand::seed(7);
        let first = |_| shares(&names(&["a", "b"]), 1, |queue| if queue == "a" { 9 } else { 1 }).swap_remove(0).queue;
        let heavy = (0..1000).map(first).filter(|queue| &**queue == "a").count();

        assert!((850..950).contains(&heavy), "{heavy}");
    }
}
