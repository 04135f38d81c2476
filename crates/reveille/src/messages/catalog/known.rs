//! What is remembered, and what is forgotten when it becomes too much: the oldest.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{PartitionEntry, QueueEntry};
use crate::messages::ids::{PartitionId, PartitionUid, QueueId};
use crate::messages::name::{PartitionName, QueueName};

/// What can be configured is believed for so long.
const BELIEVED_FOR: Duration = Duration::from_secs(1);
const PARTITIONS_MAX: usize = 100_000;
const QUEUES_MAX: usize = 10_000;

#[derive(Debug, Default)]
pub(super) struct Known {
    queues: HashMap<QueueName, Queue>,
    by_id: HashMap<PartitionId, Arc<PartitionEntry>>,
    by_uid: HashMap<PartitionUid, PartitionId>,
    /// As they were learnt.
    order: VecDeque<PartitionId>,
}

#[derive(Debug)]
struct Queue {
    id: QueueId,
    entry: Option<(Arc<QueueEntry>, Instant)>,
    partitions: HashMap<PartitionName, Arc<PartitionEntry>>,
}

impl Known {
    pub(super) fn partition(&self, queue: &QueueName, name: &PartitionName) -> Option<&Arc<PartitionEntry>> {
        self.queues.get(queue)?.partitions.get(name)
    }

    pub(super) fn queue(&self, name: &QueueName) -> Option<Arc<QueueEntry>> {
        let (entry, at) = self.queues.get(name)?.entry.as_ref()?;
        (at.elapsed() < BELIEVED_FOR).then(|| Arc::clone(entry))
    }

    pub(super) fn queue_id(&self, name: &QueueName) -> Option<QueueId> {
        self.queues.get(name).map(|queue| queue.id)
    }

    /// The known ones, and the ids of the others.
    pub(super) fn described(
        &self,
        partitions: &[PartitionId],
    ) -> (HashMap<PartitionId, Arc<PartitionEntry>>, Vec<PartitionId>) {
        let (mut found, mut unknown) = (HashMap::with_capacity(partitions.len()), Vec::new());
        for id in partitions {
            match self.by_id.get(id) {
                Some(entry) => {
                    found.insert(*id, Arc::clone(entry));
                }
                None => unknown.push(*id),
            }
        }
        (found, unknown)
    }

    pub(super) fn by_uid(&self, uid: PartitionUid) -> Option<Arc<PartitionEntry>> {
        self.by_id.get(self.by_uid.get(&uid)?).cloned()
    }

    pub(super) fn learn(&mut self, entry: Arc<PartitionEntry>) {
        self.room_for(&entry.queue_name, entry.queue);
        let partitions = &mut self.queue_of(&entry.queue_name, entry.queue).partitions;
        partitions.insert(entry.name.clone(), Arc::clone(&entry));
        self.by_uid.insert(entry.uid, entry.id);
        let id = entry.id;
        if self.by_id.insert(id, entry).is_none() {
            self.order.push_back(id);
        }
        while self.by_id.len() > PARTITIONS_MAX {
            let Some(oldest) = self.order.pop_front() else { break };
            self.forget_partition(oldest);
        }
    }

    pub(super) fn learn_queue(&mut self, entry: QueueEntry) -> Arc<QueueEntry> {
        let entry = Arc::new(entry);
        self.room_for(&entry.name, entry.id);
        self.queue_of(&entry.name, entry.id).entry = Some((Arc::clone(&entry), Instant::now()));
        entry
    }

    pub(super) fn refresh_queue(&mut self, name: &QueueName) {
        if let Some(queue) = self.queues.get_mut(name) {
            queue.entry = None;
        }
    }

    pub(super) fn forget_queue(&mut self, id: QueueId) {
        self.queues.retain(|_, queue| queue.id != id);
        self.by_id.retain(|_, entry| entry.queue != id);
        let by_id = &self.by_id;
        self.by_uid.retain(|_, partition| by_id.contains_key(partition));
        self.order.retain(|partition| by_id.contains_key(partition));
    }

    /// A name that belongs to another row now takes what was known under the old one with it.
    fn room_for(&mut self, name: &QueueName, id: QueueId) {
        match self.queues.get(name).map(|queue| queue.id) {
            Some(known) if known == id => {}
            Some(stale) => self.forget_queue(stale),
            None if self.queues.len() >= QUEUES_MAX => {
                if let Some(oldest) = self.queues.values().map(|queue| queue.id).min() {
                    self.forget_queue(oldest);
                }
            }
            None => {}
        }
    }

    fn queue_of(&mut self, name: &QueueName, id: QueueId) -> &mut Queue {
        let fresh = || Queue { id, entry: None, partitions: HashMap::new() };
        self.queues.entry(name.clone()).or_insert_with(fresh)
    }

    fn forget_partition(&mut self, id: PartitionId) {
        let Some(entry) = self.by_id.remove(&id) else { return };
        self.by_uid.remove(&entry.uid);
        if let Some(queue) = self.queues.get_mut(&entry.queue_name) {
            queue.partitions.remove(&entry.name);
        }
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn entry(queue: i32, id: i32) -> Arc<PartitionEntry> {
        Arc::new(PartitionEntry {
            id: PartitionId(id),
            queue: QueueId(queue),
            queue_name: QueueName::new("mail").unwrap(),
            name: PartitionName::new(format!("p{id}")).unwrap(),
            uid: PartitionUid(Uuid::from_u128(u128::from(id.unsigned_abs()))),
        })
    }

    #[test]
    fn the_oldest_partitions_are_forgotten_first() {
        let mut known = Known::default();
        let most = i32::try_from(PARTITIONS_MAX).unwrap();

        (0..most + 5).for_each(|id| known.learn(entry(1, id)));

        assert_eq!(known.by_id.len(), PARTITIONS_MAX);
        assert!(known.by_uid(entry(1, 4).uid).is_none());
        assert!(known.partition(&entry(1, 5).queue_name, &entry(1, 5).name).is_some());
        assert_eq!((known.by_uid.len(), known.order.len()), (PARTITIONS_MAX, PARTITIONS_MAX));
    }

    #[test]
    fn a_name_that_belongs_to_another_row_takes_the_old_partitions_with_it() {
        let mut known = Known::default();
        known.learn(entry(1, 7));

        known.learn(entry(2, 8));

        assert!(known.described(&[PartitionId(7)]).0.is_empty());
        assert_eq!(known.queue_id(&entry(2, 8).queue_name), Some(QueueId(2)));
    }
}
