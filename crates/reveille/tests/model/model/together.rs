//! Pushes and acks that happen together or not at all.

use std::collections::HashSet;

use reveille::messages::{LeaseId, MessageId, Settled};

use super::{Ack, End, Model, Place, Pushing, Report};

/// What is to happen together.
#[derive(Debug)]
pub(crate) struct Together {
    /// Partition and transaction id.
    pub(crate) pushes: Vec<(u8, Option<String>)>,
    pub(crate) settlements: Vec<Settling>,
    pub(crate) acks: Vec<Ack>,
}

#[derive(Debug)]
pub(crate) struct Settling {
    pub(crate) place: Place,
    /// `None` for what was acked by being popped.
    pub(crate) lease: Option<LeaseId>,
    pub(crate) end: End,
    pub(crate) strict: bool,
}

/// What must become of it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum TogetherEnd {
    /// The settlements hold, and the pushes are to be appended.
    Committed(Vec<Settled>),
    /// Of a message that was there, or of an earlier push of the same transaction.
    Duplicate(usize, Option<MessageId>),
    Refused(usize, Settled),
}

impl Model {
    pub(crate) fn together(&mut self, changes: &Together) -> TogetherEnd {
        let Together { pushes, settlements, acks } = changes;
        if let Some(at) = settlements.iter().position(|settling| settling.lease.is_none()) {
            return TogetherEnd::Refused(at, settlements[at].unleased());
        }
        let (bundles, refused) = self.bundled(acks);
        if let Some((at, settled)) = refused.first() {
            return TogetherEnd::Refused(settlements.len() + at, *settled);
        }
        // What is pushed to is made before anything is decided.
        for (partition, _) in pushes {
            self.make();
            self.logs.entry(*partition).or_default();
        }
        let mut after = self.clone();
        if let Some((at, of)) = after.first_duplicate(pushes) {
            return TogetherEnd::Duplicate(at, of);
        }
        let mut answers: Vec<Option<Settled>> = settlements.iter().map(|one| Some(after.settle_one(one))).collect();
        answers.resize(settlements.len() + acks.len(), None);
        for ((place, lease), items) in bundles {
            for (at, settled) in after.judge_at_once(place, lease, items) {
                answers[settlements.len() + at] = Some(settled);
            }
        }
        let refused = |answer: &Option<Settled>| answer.is_some_and(|settled| !matches!(settled, Settled::Done { .. }));
        if let Some(at) = answers.iter().position(refused) {
            return TogetherEnd::Refused(at, answers[at].unwrap_or(Settled::NotFound));
        }
        *self = after;
        TogetherEnd::Committed(answers.into_iter().flatten().collect())
    }

    /// Whatever was committed before comes before it.
    fn first_duplicate(&mut self, pushes: &[(u8, Option<String>)]) -> Option<(usize, Option<MessageId>)> {
        let remembers = self.rules.remembers;
        let mut own = HashSet::new();
        for (partition, _) in pushes {
            self.receive(*partition, usize::MAX);
        }
        pushes.iter().enumerate().find_map(|(at, (partition, name))| {
            match self.logs.get(partition)?.expects(name.as_deref(), remembers) {
                Pushing::Duplicate(of) => Some((at, Some(of))),
                Pushing::Stored(_) => {
                    let name = name.as_deref().filter(|_| remembers)?;
                    (!own.insert((*partition, name))).then_some((at, None))
                }
            }
        })
    }

    fn settle_one(&mut self, settling: &Settling) -> Settled {
        let Settling { place, lease, end, strict } = settling;
        match lease {
            Some(lease) => self.settle(*place, &Report { lease: *lease, end, strict: *strict }),
            None => settling.unleased(),
        }
    }
}

impl Settling {
    /// There is nothing to settle about what was acked by being popped.
    fn unleased(&self) -> Settled {
        if matches!(self.end, End::Through(_)) { Settled::Already } else { Settled::Passed }
    }
}
