//! Pops, and every way in which a consumer settles its leases.

use std::collections::BTreeMap;

use reveille::messages::{
    Acknowledgement, Batch, LeaseId, Message, MessagesError, Outcome, PartitionLease, PartitionUid, Pop, Settled,
    Settlement, Subscription,
};

use super::{Held, Play, agree, group_name, partition_name};
use crate::model::{Ack, Begin, Check, End, Given, Place, Report, Request, Share, Stored};
use crate::story::{How, Scope, Step, Which};

impl Play<'_> {
    /// Whether something came.
    pub(super) async fn pop(&mut self, step: &Step) -> Check<bool> {
        let Step::Pop { node, group, scope, batch, partitions, auto, begin, remember } = step else {
            return Ok(false);
        };
        // What is moved from the outbox before the group is known anew would not be new to it: it
        // may come either way.
        let begin = if self.model.outbox.is_empty() { *begin } else { Begin::All };
        let pop = self.scoped(*scope).group(group_name(*group)).batch((*batch).into()).partitions((*partitions).into());
        let pop = if *auto { pop.auto_ack() } else { pop };
        let pop = pop.subscription(if begin == Begin::New { Subscription::New } else { Subscription::All });
        let newest: BTreeMap<u8, i64> = self.model.logs.iter().map(|(p, log)| (*p, log.newest())).collect();
        // Who asks for the queue, or for whatever is in its namespace, makes it of what was sent to
        // it.
        if !self.model.outbox.is_empty() {
            self.model.make();
        }
        self.model.register(*group, begin);
        let popped = self.node(*node).pop(pop).await.map_err(|error| format!("a pop failed: {error:?}"))?;
        self.read_tables().await;

        let request = Request {
            group: *group,
            partition: if let Scope::Partition(partition) = scope { Some(*partition) } else { None },
            batch: (*batch).into(),
            partitions: (*partitions).into(),
            auto: *auto,
        };
        self.got(&request, popped, &newest, remember.then_some(*node))
    }

    /// Whether something came, and it was allowed to.
    fn got(
        &mut self,
        request: &Request,
        popped: Option<Batch>,
        newest: &BTreeMap<u8, i64>,
        remembered_by: Option<u8>,
    ) -> Check<bool> {
        let given = popped.as_ref().map(given);
        self.model.pop(request, given.as_ref(), &self.now.rows, newest)?;
        self.compare()?;
        if given.is_none() && self.model.present && !self.model.rules.paused && request.partition.is_none() {
            agree("what is left in the outbox", &self.model.outbox.len(), &0)?;
        }
        let came = popped.is_some();
        if let Some(batch) = popped {
            self.hold(batch, request.group, remembered_by);
        }
        Ok(came)
    }

    fn scoped(&self, scope: Scope) -> Pop {
        let name = self.name.as_str();
        match scope {
            Scope::Queue => Pop::queue(self.queue.clone()),
            Scope::Partition(partition) => Pop::partition(self.queue.clone(), partition_name(partition)),
            Scope::Namespace => Pop::namespace(name),
            Scope::Task => Pop::task(name),
            Scope::Both => Pop::namespace_and_task(name, name),
        }
    }

    /// As consumers do that go on: the whole batch is done, the next one is wanted.
    pub(super) async fn complete_and_pop(&mut self, node: u8, which: Which, most: (u8, u8)) -> Check {
        let Some((held, _)) = self.pick(which) else { return Ok(()) };
        let group = held.group;
        let attempts: Vec<Attempt> = (0..held.parts.len()).map(|part| attempt(held, part, How::Complete)).collect();
        let answers = self.node(node).complete(&held.batch).await;
        self.expect_settled(&attempts, answers, false)?;
        self.read_tables().await;
        self.compare()?;
        let (batch, partitions) = most;
        let (scope, begin) = (Scope::Queue, Begin::All);
        let pop = Step::Pop { node, group, scope, batch, partitions, auto: false, begin, remember: false };
        self.pop(&pop).await.map(|_| ())
    }

    fn hold(&mut self, batch: Batch, group: u8, remembered_by: Option<u8>) {
        if let Some(node) = remembered_by {
            self.node(node).remember(&batch);
        }
        let partitions = batch.partitions.iter().map(number);
        let parts = partitions.map(|partition| (partition, self.model.cursor((partition, group)).through)).collect();
        self.held.push(Held { batch, group, parts, life: self.lives, remembered_by });
    }

    pub(super) fn pick(&self, which: Which) -> Option<(&Held, usize)> {
        let held = self.held.iter().rev().nth(usize::from(which.back) % self.held.len().max(1))?;
        Some((held, usize::from(which.part) % held.parts.len()))
    }

    pub(super) async fn settle(&mut self, node: u8, which: &[Which], how: How, (strict, twice): (bool, bool)) -> Check {
        let mut attempts = Vec::new();
        for which in which {
            let Some((held, part)) = self.pick(*which) else { return Ok(()) };
            let attempt = attempt(held, part, how);
            attempts.extend(std::iter::repeat_n(attempt, 1 + usize::from(twice)));
        }
        let strictly = |settlement: Settlement| if strict { settlement.strict() } else { settlement };
        let settlements = attempts.iter().map(|(settlement, ..)| strictly(settlement.clone())).collect();
        let answers = self.node(node).settle(settlements).await;
        self.expect_settled(&attempts, answers, strict)
    }

    fn expect_settled(
        &mut self,
        attempts: &[Attempt],
        answers: Vec<Result<Settled, MessagesError>>,
        strict: bool,
    ) -> Check {
        agree("how many answers", &answers.len(), &attempts.len())?;
        for ((_, place, lease, end), answer) in attempts.iter().zip(answers) {
            let settled = answer.map_err(|error| format!("a settlement failed: {error:?}"))?;
            let expected = match lease {
                Some(lease) => self.model.settle(*place, &Report { lease: *lease, end, strict }),
                None if matches!(end, End::Through(_)) => Settled::Already,
                None => Settled::Passed,
            };
            agree("a settlement", &settled, &expected)?;
        }
        Ok(())
    }

    pub(super) async fn acknowledge(
        &mut self,
        node: u8,
        which: &[Which],
        results: &[(u8, Outcome)],
        (named, strict): (bool, bool),
    ) -> Check {
        let mut acks = Vec::new();
        for which in which {
            let Some((held, part)) = self.pick(*which) else { return Ok(()) };
            acks.extend(results.iter().map(|result| self.ack(held, part, *result, (node, named, strict))));
        }
        let calls = acks.iter().map(|(uid, ack)| acknowledgement(*uid, ack)).collect();
        let answers = self.node(node).acknowledge(calls).await;
        let acks: Vec<Ack> = acks.into_iter().map(|(_, ack)| ack).collect();
        let expected = self.model.acknowledge(&acks);
        let settled: Result<Vec<Settled>, _> = answers.into_iter().collect();
        agree("acknowledgements", &settled.map_err(|error| format!("an acknowledgement failed: {error:?}"))?, &expected)
    }

    pub(super) fn ack(
        &self,
        held: &Held,
        part: usize,
        (at, outcome): (u8, Outcome),
        (node, named, strict): (u8, bool, bool),
    ) -> (PartitionUid, Ack) {
        let lease = &held.batch.partitions[part];
        let message = &lease.messages[usize::from(at) % lease.messages.len()];
        let name = message.transaction_id.clone();
        let first = lease.messages.iter().find(|message| message.transaction_id == name).map(|message| message.seq);
        let ack = Ack {
            place: (held.parts[part].0, held.group),
            lease: held.batch.lease.filter(|_| named),
            outcome,
            error: (outcome != Outcome::Completed).then(|| error(outcome)),
            strict,
            remembered: first.filter(|_| held.remembered_by == Some(node) && held.batch.lease.is_some()),
            foreign: held.life != self.lives,
            transaction_id: name,
        };
        (lease.partition_uid, ack)
    }

    pub(super) async fn release(&mut self, node: u8, which: Which) -> Check {
        let Some(lease) = self.pick(which).and_then(|(held, _)| held.batch.lease) else { return Ok(()) };
        let released = self.node(node).release(lease).await.map_err(|error| format!("a release failed: {error:?}"))?;
        let places: Vec<Place> = self.leased(lease);
        for place in &places {
            self.model.settle(*place, &Report { lease, end: &End::Released, strict: false });
        }
        agree("how much was released", &released, &places.len())
    }

    pub(super) async fn renew(&mut self, node: u8, which: Which, strict: bool) -> Check {
        let Some(lease) = self.pick(which).and_then(|(held, _)| held.batch.lease) else { return Ok(()) };
        let node = self.node(node);
        let renewed = if strict { node.renew_strictly(lease, None).await } else { node.renew(lease, None).await };
        let renewed = renewed.map_err(|error| format!("a renewal failed: {error:?}"))?;
        let mut count = 0;
        for place in self.leased(lease) {
            let held = self.model.cursors.get_mut(&place).and_then(|cursor| cursor.lease.as_mut());
            if let Some(held) = held.filter(|held| !(strict && held.ended)) {
                held.ended = false;
                count += 1;
            }
        }
        agree("what was renewed", &renewed.map(|renewed| renewed.partitions), &(count > 0).then_some(count))
    }

    fn leased(&self, lease: LeaseId) -> Vec<Place> {
        let mine =
            self.model.cursors.iter().filter(|(_, cursor)| cursor.nonce == Some(lease) && cursor.lease.is_some());
        mine.map(|(place, _)| *place).collect()
    }
}

fn number(lease: &PartitionLease) -> u8 {
    lease.partition.as_str()[1..].parse().expect("a number")
}

fn given(batch: &Batch) -> Given {
    let share = |lease: &PartitionLease| Share {
        partition: number(lease),
        deliveries: lease.deliveries,
        messages: lease.messages.iter().map(|message| (message.seq, stored(message))).collect(),
    };
    Given { lease: batch.lease, shares: batch.partitions.iter().map(share).collect() }
}

fn stored(message: &Message) -> Stored {
    Stored {
        id: message.id,
        transaction_id: message.transaction_id.clone(),
        payload: message.payload.as_bytes().to_owned(),
        only: None,
        deleted: false,
    }
}

pub(super) type Attempt = (Settlement, Place, Option<LeaseId>, End);

pub(super) fn attempt(held: &Held, part: usize, how: How) -> Attempt {
    let lease = &held.batch.partitions[part];
    let (partition, through) = held.parts[part];
    let at = |offset: u8| lease.messages[0].seq + i64::from(offset);
    let (settlement, end) = match how {
        How::Complete => (Settlement::complete(lease), End::Through(through)),
        How::Through(offset) => (Settlement::complete_through(lease, at(offset)), End::Through(at(offset))),
        How::Stop(offset, Outcome::Retry) => (Settlement::retry(lease, at(offset)), stop(at(offset), Outcome::Retry)),
        How::Stop(offset, Outcome::Failed) => {
            (Settlement::fail(lease, at(offset), error(Outcome::Failed)), stop(at(offset), Outcome::Failed))
        }
        How::Stop(offset, _) => {
            (Settlement::dead(lease, at(offset), error(Outcome::Dead)), stop(at(offset), Outcome::Dead))
        }
        How::Release => (Settlement::release(lease), End::Released),
    };
    (settlement, (partition, held.group), held.batch.lease, end)
}

fn stop(seq: i64, outcome: Outcome) -> End {
    End::At(seq, outcome, (outcome != Outcome::Retry).then(|| error(outcome)))
}

fn error(outcome: Outcome) -> String {
    format!("it is {outcome:?}")
}

pub(super) fn acknowledgement(uid: PartitionUid, ack: &Ack) -> Acknowledgement {
    let made =
        Acknowledgement::new(uid, ack.transaction_id.clone()).group(group_name(ack.place.1)).outcome(ack.outcome);
    let made = ack.lease.map_or(made.clone(), |lease| made.lease(lease));
    let made = match &ack.error {
        Some(error) => made.error(error.clone()),
        None => made,
    };
    if ack.strict { made.strict() } else { made }
}
