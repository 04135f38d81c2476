//! A bounded cache of queues and partitions; the least recently used are forgotten first.
//!
//! Promises that adding, using and forgetting an entry costs the same however many there are: every
//! push and pop comes here, under one lock. Forgetting a queue also forgets its partitions, and
//! touches no others.

use std::collections::HashMap;
use std::hash::RandomState;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hashlink::LinkedHashMap;

use super::{PartitionEntry, QueueEntry};
use crate::messages::ids::{PartitionId, PartitionUid, QueueId};
use crate::messages::name::{PartitionName, QueueName};

/// How old the options of a queue may be.
const OPTIONS_AGE_MAX: Duration = Duration::from_secs(1);
const PARTITIONS_MAX: usize = 100_000;
const QUEUES_MAX: usize = 10_000;

#[derive(Debug, Default)]
pub(super) struct Cache {
    /// The most recently used stands at the end, as among the partitions.
    queues: LinkedHashMap<QueueName, Queue, RandomState>,
    names: HashMap<QueueId, QueueName>,
    by_id: LinkedHashMap<PartitionId, Arc<PartitionEntry>, RandomState>,
    by_uid: HashMap<PartitionUid, PartitionId>,
}

#[derive(Debug)]
struct Queue {
    id: QueueId,
    entry: Option<(Arc<QueueEntry>, Instant)>,
    partitions: HashMap<PartitionName, Arc<PartitionEntry>>,
}

impl Cache {
    pub(super) fn partition(&mut self, queue: &QueueName, name: &PartitionName) -> Option<Arc<PartitionEntry>> {
        let entry = Arc::clone(self.queues.to_back(queue)?.partitions.get(name)?);
        self.by_id.to_back(&entry.id);
        Some(entry)
    }

    pub(super) fn queue(&mut self, name: &QueueName) -> Option<Arc<QueueEntry>> {
        let (entry, at) = self.queues.to_back(name)?.entry.as_ref()?;
        (at.elapsed() < OPTIONS_AGE_MAX).then(|| Arc::clone(entry))
    }

    pub(super) fn queue_id(&self, name: &QueueName) -> Option<QueueId> {
        self.queues.get(name).map(|queue| queue.id)
    }

    /// The partitions that are remembered, and the ids of the others.
    pub(super) fn described(
        &mut self,
        partitions: &[PartitionId],
    ) -> (HashMap<PartitionId, Arc<PartitionEntry>>, Vec<PartitionId>) {
        let (mut found, mut unknown) = (HashMap::with_capacity(partitions.len()), Vec::new());
        for id in partitions {
            match self.used(*id) {
                Some(entry) => {
                    found.insert(*id, entry);
                }
                None => unknown.push(*id),
            }
        }
        (found, unknown)
    }

    pub(super) fn by_uid(&mut self, uid: PartitionUid) -> Option<Arc<PartitionEntry>> {
        let id = *self.by_uid.get(&uid)?;
        self.used(id)
    }

    pub(super) fn learn(&mut self, entry: Arc<PartitionEntry>) {
        let partitions = &mut self.queue_of(&entry.queue_name, entry.queue).partitions;
        partitions.insert(entry.name.clone(), Arc::clone(&entry));
        self.by_uid.insert(entry.uid, entry.id);
        self.by_id.insert(entry.id, entry);
        while self.by_id.len() > PARTITIONS_MAX {
            let Some((_, oldest)) = self.by_id.pop_front() else { break };
            self.by_uid.remove(&oldest.uid);
            if let Some(queue) = self.queues.get_mut(&oldest.queue_name) {
                queue.partitions.remove(&oldest.name);
            }
        }
    }

    pub(super) fn learn_queue(&mut self, entry: QueueEntry) -> Arc<QueueEntry> {
        let entry = Arc::new(entry);
        self.queue_of(&entry.name, entry.id).entry = Some((Arc::clone(&entry), Instant::now()));
        entry
    }

    pub(super) fn refresh_queue(&mut self, name: &QueueName) {
        if let Some(queue) = self.queues.get_mut(name) {
            queue.entry = None;
        }
    }

    pub(super) fn forget_queue(&mut self, id: QueueId) {
        let Some(name) = self.names.remove(&id) else { return };
        if let Some(queue) = self.queues.remove(&name) {
            self.forget_partitions(&queue);
        }
    }

    /// Marks a partition as used, and with it its queue.
    fn used(&mut self, id: PartitionId) -> Option<Arc<PartitionEntry>> {
        let entry = Arc::clone(self.by_id.to_back(&id)?);
        self.queues.to_back(&entry.queue_name);
        Some(entry)
    }

    /// A queue by its name. If the name belongs to another row now, the old queue is forgotten.
    fn queue_of(&mut self, name: &QueueName, id: QueueId) -> &mut Queue {
        let stale = self.queue_id(name).filter(|known| *known != id);
        if let Some(stale) = stale {
            self.forget_queue(stale);
        }
        if !self.queues.contains_key(name) {
            while self.queues.len() >= QUEUES_MAX {
                let Some((_, oldest)) = self.queues.pop_front() else { break };
                self.names.remove(&oldest.id);
                self.forget_partitions(&oldest);
            }
            self.names.insert(id, name.clone());
        }
        self.queues.to_back(name);
        let new = || Queue { id, entry: None, partitions: HashMap::new() };
        self.queues.entry(name.clone()).or_insert_with(new)
    }

    fn forget_partitions(&mut self, queue: &Queue) {
        for entry in queue.partitions.values() {
            self.by_id.remove(&entry.id);
            self.by_uid.remove(&entry.uid);
        }
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn entry(queue: i32, id: i32) -> Arc<PartitionEntry> {
        named("mail", queue, id)
    }

    fn named(name: &str, queue: i32, id: i32) -> Arc<PartitionEntry> {
        Arc::new(PartitionEntry {
            id: PartitionId(id),
            queue: QueueId(queue),
            queue_name: QueueName::new(name).unwrap(),
            name: PartitionName::new(format!("p{id}")).unwrap(),
            uid: PartitionUid(Uuid::from_u128(u128::from(id.unsigned_abs()))),
        })
    }

    fn is_known(cache: &mut Cache, entry: &PartitionEntry) -> bool {
        cache.partition(&entry.queue_name, &entry.name).is_some()
    }

    fn sizes(cache: &Cache) -> [usize; 4] {
        [cache.queues.len(), cache.names.len(), cache.by_id.len(), cache.by_uid.len()]
    }

    #[test]
    fn the_partitions_that_were_not_used_for_longest_are_forgotten_first() {
        let mut cache = Cache::default();
        let most = i32::try_from(PARTITIONS_MAX).unwrap();
        (0..most).for_each(|id| cache.learn(entry(1, id)));

        assert!(is_known(&mut cache, &entry(1, 0)), "it is used");
        (most..most + 5).for_each(|id| cache.learn(entry(1, id)));

        assert_eq!(sizes(&cache), [1, 1, PARTITIONS_MAX, PARTITIONS_MAX]);
        assert!(cache.by_uid(entry(1, 5).uid).is_none());
        assert!(is_known(&mut cache, &entry(1, 0)) && is_known(&mut cache, &entry(1, 6)));
    }

    #[test]
    fn the_queues_that_were_not_used_for_longest_are_forgotten_first_with_their_partitions() {
        let mut cache = Cache::default();
        let most = i32::try_from(QUEUES_MAX).unwrap();
        let of = |number: i32| named(&format!("q{number}"), number, number);
        (0..most).for_each(|number| cache.learn(of(number)));

        assert!(is_known(&mut cache, &of(0)), "it is used, and has the lowest id");
        (most..most + 5).for_each(|number| cache.learn(of(number)));

        assert_eq!(sizes(&cache), [QUEUES_MAX; 4]);
        assert!(!is_known(&mut cache, &of(5)));
        assert!(is_known(&mut cache, &of(0)) && is_known(&mut cache, &of(6)));
    }

    #[test]
    fn a_name_that_belongs_to_another_row_takes_the_old_partitions_with_it() {
        let mut cache = Cache::default();
        cache.learn(entry(1, 7));

        cache.learn(entry(2, 8));

        assert!(cache.described(&[PartitionId(7)]).0.is_empty());
        assert_eq!(cache.queue_id(&entry(2, 8).queue_name), Some(QueueId(2)));
        assert_eq!(sizes(&cache), [1; 4]);
    }

    /// A cache that walks all entries for each new one takes minutes.
    #[test]
    fn what_goes_beyond_the_bounds_costs_no_more_than_what_fits() {
        let mut cache = Cache::default();
        let began = Instant::now();

        for number in 0..200_000 {
            cache.learn(named(&format!("q{number}"), number, number));
            cache.forget_queue(QueueId(number / 2));
        }

        assert!(began.elapsed() < Duration::from_secs(20), "it took {:?}", began.elapsed());
        assert!(sizes(&cache).into_iter().all(|size| size <= QUEUES_MAX));
    }
}
