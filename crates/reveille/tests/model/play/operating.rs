//! What operators do to the queue as a whole, and to its groups.

use reveille::messages::{DeletedGroup, MessagesError, Subscriptions};

use super::{Play, agree, group_name};
use crate::model::Check;

impl Play<'_> {
    pub(super) async fn pause(&mut self, node: u8, on: bool) -> Check {
        let node = self.node(node);
        let answer = if on { node.pause(&self.queue).await } else { node.resume(&self.queue).await };
        let answer = self.unless_absent(answer.map(|queue| queue.paused))?;
        agree("whether it is paused", &answer, &self.model.present.then_some(on))?;
        self.model.rules.paused = on;
        Ok(())
    }

    /// Its subscription is kept: it begins again where it began.
    pub(super) async fn delete_group(&mut self, node: u8, group: u8) -> Check {
        let partitions = self.model.logs.len();
        self.delete(node, group, Subscriptions::Keep, partitions).await?;
        if self.model.groups.contains(&group) {
            self.read_tables().await;
            for partition in self.model.logs.keys().copied().collect::<Vec<_>>() {
                let place = (partition, group);
                let nonce = self.new_nonce(place)?;
                self.model.begin_again(place, nonce);
            }
        }
        Ok(())
    }

    pub(super) async fn forget_group(&mut self, node: u8, group: u8) -> Check {
        let cursors = self.now.rows.keys().filter(|place| place.1 == group).count();
        self.delete(node, group, Subscriptions::Forget, cursors).await?;
        self.model.forget_group(group);
        Ok(())
    }

    async fn delete(&self, node: u8, group: u8, subscriptions: Subscriptions, partitions: usize) -> Check {
        let answer = self.node(node).delete_group(Some(&self.queue), &group_name(group), subscriptions).await;
        let DeletedGroup { queues, partitions: answer, .. } =
            answer.map_err(|error| format!("a group could not be deleted: {error:?}"))?;
        let known = self.model.groups.contains(&group);
        let expected = if known { (1, partitions as u64) } else { (0, 0) };
        agree("what was deleted with the group", &(queues, answer), &expected)
    }

    pub(super) async fn purge(&mut self, node: u8) -> Check {
        let answer = self.node(node).purge(&self.queue).await;
        let purged = self.model.purge();
        let answer = self.unless_absent(answer)?;
        agree("what was purged", &answer, &(self.model.present || purged > 0).then_some(purged))
    }

    /// Consumers keep batches whose leases are lost.
    pub(super) async fn delete_queue(&mut self, node: u8) -> Check {
        let answer = self.node(node).delete_queue(&self.queue).await;
        let answer = answer.map_err(|error| format!("the queue could not be deleted: {error:?}"))?;
        agree("whether there was a queue", &answer, &self.model.present)?;
        self.model.delete_queue();
        self.uids.clear();
        self.lives += 1;
        Ok(())
    }

    /// `None` when the queue is not there.
    fn unless_absent<T>(&self, answer: Result<T, MessagesError>) -> Check<Option<T>> {
        match answer {
            Ok(answer) => Ok(Some(answer)),
            Err(MessagesError::NoQueue { .. }) if !self.model.present => Ok(None),
            Err(error) => Err(format!("an operator was refused: {error:?}")),
        }
    }
}
