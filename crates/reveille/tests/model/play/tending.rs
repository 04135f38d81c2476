//! What operators do, and what time does.

use reveille::messages::{DeadLetterId, LeaseId, MessagesError, SeekTo};

use super::{Play, agree, group_name, partition_name};
use crate::model::{Check, Place, Rules};

impl Play<'_> {
    pub(super) async fn make_queue(&self, rules: Rules) {
        let (queue, name) = (self.queue.as_str(), &self.name);
        let make = format!(
            "insert into reveille.queue (name, namespace, task) values
               ('{queue}', '{name}', '{name}'), ('{name}.empty', '{name}', 'empty')"
        );
        self.eye.run(&make).await;
        self.write(rules).await;
    }

    pub(super) async fn configure(&mut self, rules: Rules) {
        if self.model.present {
            // Not of a queue that was made by a push: what it remembers is decided.
            let rules = Rules { remembers: self.model.rules.remembers, ..rules };
            self.write(rules).await;
            self.model.rules = rules;
        }
    }

    async fn write(&self, rules: Rules) {
        let Rules { retry_limit, max_deliveries, slow_retry, dead_letters, paused, remembers } = rules;
        let retry_delay = if slow_retry { "1 hour" } else { "0" };
        let window = if remembers { "1 hour" } else { "0" };
        let name = self.queue.as_str();
        let change = format!(
            "update reveille.queue set retry_limit = {retry_limit}, max_deliveries = {max_deliveries},
               retry_delay = '{retry_delay}', dead_letters = {dead_letters}, paused = {paused}, dedup_window = '{window}'
             where name = '{name}'"
        );
        self.eye.run(&change).await;
    }

    /// The ids of this history's cursors that match.
    fn cursors(&self, condition: &str) -> String {
        let name = self.queue.as_str();
        format!(
            "from reveille.queue, reveille.partition, reveille.consumer_group
             where queue.name = '{name}' and partition.queue = queue.id and consumer_group.queue = queue.id
               and cursor.partition = partition.id and cursor.grp = consumer_group.id and {condition}"
        )
    }

    pub(super) async fn expire(&mut self, place: Option<(u8, u8)>) {
        let condition = match place {
            Some((partition, group)) => {
                let group = group_name(group);
                format!(
                    "cursor.lease_until is not null and partition.name = 'p{partition}' and consumer_group.name = '{group}'"
                )
            }
            None => "cursor.lease_until is not null".to_owned(),
        };
        let over = "clock_timestamp() - interval '1 second'";
        let end =
            format!("update reveille.cursor set lease_until = {over}, due_at = {over} {}", self.cursors(&condition));
        self.eye.run(&end).await;
        let places: Vec<_> = self.model.cursors.keys().copied().collect();
        for at in places.into_iter().filter(|at| place.is_none_or(|place| place == *at)) {
            self.model.expire(at);
        }
    }

    pub(super) async fn wait_out_retries(&mut self) {
        let waiting = self.cursors("cursor.lease_until is null and cursor.due_at > clock_timestamp()");
        self.eye.run(&format!("update reveille.cursor set due_at = clock_timestamp() {waiting}")).await;
        self.model.wait_out_retries();
    }

    pub(super) async fn seek(&mut self, node: u8, group: u8, partition: Option<u8>, to: u8) -> Check {
        let (place, seq) = match to {
            0 => (SeekTo::Beginning, 0),
            1 => (SeekTo::End, i64::MAX),
            seq => (SeekTo::After(i64::from(seq) - 2), i64::from(seq) - 2),
        };
        let name = partition.map(partition_name);
        let sought = self.node(node).seek(&self.queue, &group_name(group), name.as_ref(), place).await;
        let known = partition.is_none_or(|partition| self.model.logs.contains_key(&partition));
        let sought = match sought {
            Err(MessagesError::NoQueue { .. }) if !self.model.present => return Ok(()),
            Err(MessagesError::NoGroup { .. }) if self.model.present && !self.model.groups.contains(&group) => {
                return Ok(());
            }
            Err(MessagesError::NoPartition { .. }) if !known => return Ok(()),
            Err(error) => return Err(format!("a seek failed: {error:?}")),
            Ok(_) if !known || !self.model.groups.contains(&group) => {
                return Err("it sought what is not there".to_owned());
            }
            Ok(sought) => sought,
        };
        let all: Vec<u8> = self.model.logs.keys().copied().collect();
        let scope: Vec<u8> = all.into_iter().filter(|at| partition.is_none_or(|only| only == *at)).collect();
        let beyond =
            |at: &&u8| place != SeekTo::End && !(self.model.purged(**at)..=self.model.newest(**at)).contains(&seq);
        let clamped = scope.iter().filter(beyond).count();
        self.read_tables().await;
        for at in &scope {
            let nonce = self.new_nonce((*at, group))?;
            self.model.seek((*at, group), seq, nonce);
        }
        agree("partitions sought", &(sought.partitions, sought.clamped), &(scope.len() as u64, clamped as u64))
    }

    /// The nonce of a place that was sought: no consumer ever had it.
    pub(super) fn new_nonce(&self, place: Place) -> Check<Option<LeaseId>> {
        let nonce = self.now.rows.get(&place).and_then(|row| row.nonce);
        let known = self.held.iter().any(|held| held.batch.lease.is_some() && held.batch.lease == nonce);
        agree("whether a lease outlived a seek", &known, &false)?;
        Ok(nonce)
    }

    /// Every third or so, by the bits of a number.
    fn choose(&self, letters: u8) -> (Vec<usize>, Vec<DeadLetterId>) {
        let count = self.now.letters.len();
        let chosen: Vec<usize> = (0..count).filter(|at| letters >> (at % 8) & 1 == 1).collect();
        let ids = chosen.iter().map(|at| DeadLetterId(self.now.letters[*at].0)).collect();
        (chosen, ids)
    }

    pub(super) async fn redrive(&mut self, node: u8, letters: u8) -> Check {
        let (chosen, ids) = self.choose(letters);
        let redriven = self.node(node).redrive(&ids).await.map_err(|error| format!("a redrive failed: {error:?}"))?;
        agree("letters redriven", &redriven, &self.model.redrive(&chosen))
    }

    pub(super) async fn delete_letters(&mut self, node: u8, letters: u8) -> Check {
        let (chosen, ids) = self.choose(letters);
        let deleted = self.node(node).delete_dead_letters(&ids).await;
        let deleted = deleted.map_err(|error| format!("letters could not be deleted: {error:?}"))?;
        self.model.delete_letters(&chosen);
        agree("letters deleted", &deleted, &(chosen.len() as u64))
    }

    pub(super) async fn forget_transaction_ids(&mut self) {
        let name = self.queue.as_str();
        for (table, over) in [("dedup", "until = until"), ("dedup_run", "until = until"), ("segment", "at = at")] {
            let over = format!(
                "update reveille.{table} as seen set {over} - interval '2 hours'
                 from reveille.queue, reveille.partition
                 where queue.name = '{name}' and partition.queue = queue.id and seen.partition = partition.id"
            );
            self.eye.run(&over).await;
        }
        self.model.logs.values_mut().for_each(crate::model::Log::forget);
    }

    pub(super) async fn delete_message(&mut self, partition: u8, seq: u8) -> Check {
        let seq = i64::from(seq) + 1;
        let Some(uid) = self.uids.get(&partition).copied() else { return Ok(()) };
        let Some(log) = self.model.logs.get_mut(&partition) else { return Ok(()) };
        let Some(held) = log.at(seq).cloned() else { return Ok(()) };
        let alike = log.messages.iter().filter(|other| other.transaction_id == held.transaction_id && !other.deleted);
        if seq <= log.purged || alike.count() > 1 {
            return Ok(());
        }
        let deleted = !held.deleted;
        log.delete(seq);
        let answer = self.node(0).delete_message(uid, &held.transaction_id).await;
        agree("a deletion", &answer.map_err(|error| format!("a deletion failed: {error:?}"))?, &deleted)
    }
}
