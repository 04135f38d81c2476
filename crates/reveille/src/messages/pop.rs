//! From a waiting consumer to its messages.
//!
//! Owns the dispatcher of the queues. Promises that one look serves everybody who waits, that nobody polls, that a consumer
//! which goes away keeps nothing, and that a claim whose answer was lost is released at once. Makes neither queues nor
//! partitions: whoever pops what is not there waits for it.
//!
//! Next: `resolve` (names to keys), `round` (keys to claims), `rows` (rows to messages), then
//! [`super::settle`].

mod claim;
mod homeless;
mod marks;
mod request;
mod resolve;
mod round;
mod rows;

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use reveille_wake::{Answer, Dispatcher, DispatcherHandle, DispatcherOptions, Pace, Patience};
use tokio::sync::Semaphore;

use super::Messages;
use super::error::MessagesError;
use super::ground::Ground;
use super::group::{Groups, Subscription};
use super::key::Key;
use super::message::Batch;
use super::name::{GroupName, PartitionName, QueueName};
use crate::database::Registration;
use crate::doctor::stranded;
use request::{Ask, Found};
use resolve::Resolver;
use round::Looker;

/// The most messages one pop brings.
pub(super) const BATCH_MAX: u32 = 10_000;
/// The most partitions one pop brings.
pub(super) const PARTITIONS_MAX: u32 = 1000;
/// The connection on which all pops of a process are served.
pub(super) const LOOKS: [&str; 1] = ["pop"];
/// How often names are resolved again in a row without a breath.
const AGAIN_MAX: u32 = 16;
/// How many pops may resolve names at once; the others wait in line.
const RESOLVING_MAX: usize = 64;
const BREATH: Duration = Duration::from_millis(20);

/// What a consumer asks for.
#[derive(Debug, Clone)]
#[must_use = "it is popped by `Messages::pop`"]
pub struct Pop {
    place: Place,
    group: GroupName,
    subscription: Subscription,
    batch: u32,
    partitions: u32,
    auto_ack: bool,
    wait: Duration,
}

/// Where to look.
#[derive(Debug, Clone)]
enum Place {
    Queue(QueueName),
    Partition(QueueName, PartitionName),
    Space { namespace: Option<Arc<str>>, task: Option<Arc<str>> },
}

impl Pop {
    /// From any partition of a queue.
    pub fn queue(queue: QueueName) -> Self {
        Self::at(Place::Queue(queue))
    }

    /// From one partition of a queue.
    pub fn partition(queue: QueueName, partition: PartitionName) -> Self {
        Self::at(Place::Partition(queue, partition))
    }

    /// From any queue of a namespace, those with the higher priority first.
    pub fn namespace(namespace: impl Into<Arc<str>>) -> Self {
        Self::at(Place::Space { namespace: Some(namespace.into()), task: None })
    }

    /// From any queue of a task, those with the higher priority first.
    pub fn task(task: impl Into<Arc<str>>) -> Self {
        Self::at(Place::Space { namespace: None, task: Some(task.into()) })
    }

    /// From any queue of a task within a namespace, those with the higher priority first.
    pub fn namespace_and_task(namespace: impl Into<Arc<str>>, task: impl Into<Arc<str>>) -> Self {
        Self::at(Place::Space { namespace: Some(namespace.into()), task: Some(task.into()) })
    }

    fn at(place: Place) -> Self {
        Self {
            place,
            group: GroupName::queue_mode(),
            subscription: Subscription::All,
            batch: 1,
            partitions: 1,
            auto_ack: false,
            wait: Duration::ZERO,
        }
    }

    /// For which consumer group. Default: the consumers of a plain queue.
    pub fn group(mut self, group: GroupName) -> Self {
        self.group = group;
        self
    }

    /// Where the group begins, if this pop is its first. Default: with everything there is.
    pub fn subscription(mut self, subscription: Subscription) -> Self {
        self.subscription = subscription;
        self
    }

    /// How many messages at most, over all partitions. Default: 1; zero counts as one, more than 10,000 as 10,000.
    pub fn batch(mut self, messages: u32) -> Self {
        self.batch = messages.clamp(1, BATCH_MAX);
        self
    }

    /// From how many partitions at most. Default: 1; zero counts as one, more than 1,000 as 1,000.
    pub fn partitions(mut self, partitions: u32) -> Self {
        self.partitions = partitions.clamp(1, PARTITIONS_MAX);
        self
    }

    /// The messages count as settled once they are popped: durably, before they are handed out. What is lost on the way
    /// from here is lost. Default: they are leased.
    pub fn auto_ack(mut self) -> Self {
        self.auto_ack = true;
        self
    }

    /// How long to wait for a message. Default: not at all; more than a day counts as a day.
    pub fn wait(mut self, time: Duration) -> Self {
        self.wait = time;
        self
    }
}

impl Messages {
    /// Messages for a consumer, or `None` when none came in time. They are leased to whoever got them until they are
    /// settled or the lease ends. Dropping the future gives up: what was claimed for it goes to the next one, or back.
    pub async fn pop(&self, pop: Pop) -> Result<Option<Batch>, MessagesError> {
        self.parts.popper.pop(&pop).await
    }

    /// How many partitions have messages for a group that nothing would ever bring to it: always zero, or it is a defect.
    /// Reads everything, so ask seldom.
    pub async fn stranded(&self) -> Result<i64, MessagesError> {
        Ok(stranded(&*self.database().administer().await?).await?)
    }
}

/// The way of all pops of a process. Its dispatcher starts with the first one: a program that only pushes has none.
#[derive(Debug)]
pub(super) struct Popper {
    ground: Arc<Ground>,
    groups: Arc<Groups>,
    resolver: Arc<Resolver>,
    door: OnceLock<Door>,
    /// How many may be resolving names.
    resolving: Arc<Semaphore>,
}

#[derive(Debug)]
struct Door {
    handle: DispatcherHandle<Arc<Looker>>,
    looker: Arc<Looker>,
    _registration: Registration,
}

impl Popper {
    pub(super) fn new(ground: &Arc<Ground>) -> Self {
        let resolving = Arc::new(Semaphore::new(RESOLVING_MAX));
        let groups = Arc::new(Groups::new(ground));
        let resolver = Arc::new(Resolver::new(ground, &groups));
        Self { ground: Arc::clone(ground), groups, resolver, door: OnceLock::new(), resolving }
    }

    async fn pop(&self, pop: &Pop) -> Result<Option<Batch>, MessagesError> {
        let until = Instant::now().checked_add(pop.wait).filter(|_| !pop.wait.is_zero());
        let door = self.door();
        let mut agains = 0;
        loop {
            let keys = match self.resolver.known(pop) {
                Some(keys) => keys,
                None => self.resolve(pop).await?,
            };
            self.ground.bell.meet(&keys);
            let ask = Ask::of(pop, Arc::clone(&keys));
            let ticket = door.handle.ask(keys, ask, until.map_or(Patience::Now, Patience::Until));
            match ticket.map_err(overloaded)?.await {
                Answer::Lease(Found::Batch(batch)) => return Ok(Some(batch.into_batch())),
                Answer::Lease(Found::Refused(error)) => return Err(error),
                Answer::Lease(Found::Again) => {
                    self.resolver.forget(pop);
                    agains += 1;
                }
                Answer::Nothing => return Ok(None),
                Answer::Failed => return Err(door.looker.last_failure()),
                Answer::Refused(refused) => return Err(overloaded(refused)),
                Answer::Closed => return Err(MessagesError::Closed),
            }
            if agains % AGAIN_MAX == 0 {
                if until.is_none() {
                    return Ok(None);
                }
                tokio::time::sleep(BREATH).await;
            }
        }
    }

    /// In a task of its own: a consumer that goes away in the middle of a statement would leave its connection unfit for the
    /// next one, and enough of them would keep each other from ever being resolved. It also keeps whoever waits from carrying
    /// the room for it all the time.
    async fn resolve(&self, pop: &Pop) -> Result<Arc<[Key]>, MessagesError> {
        let Ok(turn) = Arc::clone(&self.resolving).acquire_owned().await else { return Err(MessagesError::Closed) };
        let (resolver, pop) = (Arc::clone(&self.resolver), pop.clone());
        let resolving = self.ground.tasks.spawn(async move {
            let keys = resolver.keys(&pop).await;
            drop(turn);
            keys
        });
        resolving.await.unwrap_or(Err(MessagesError::Closed))
    }

    /// Who waits, under how many keys of which state, and the pace. A process that never popped waits for nobody.
    pub(super) fn figures(&self) -> (usize, (usize, usize, usize), Pace) {
        match self.door.get() {
            Some(door) => (door.handle.demands(), door.handle.keys(), door.handle.pace()),
            None => (0, (0, 0, 0), Pace::Long),
        }
    }

    fn door(&self) -> &Door {
        self.door.get_or_init(|| {
            let ground = &self.ground;
            let looker = Arc::new(Looker::new(Arc::clone(ground), Arc::clone(&self.groups)));
            let options = DispatcherOptions::default().max_demands(ground.options.waiters_max);
            let options = options.pace(ground.options.pace).backoff(ground.options.backoff);
            let (dispatcher, handle) = Dispatcher::new(ground.bell.hub(), Arc::clone(&looker), options);
            let registration = ground.database.register(Arc::clone(&ground.bell) as Arc<_>);
            if let Some(runner) = ground.bell.take_runner() {
                ground.tasks.spawn(runner.run(ground.end.clone().cancelled_owned()));
            }
            ground.tasks.spawn(dispatcher.run(ground.end.clone().cancelled_owned()));
            Door { handle, looker, _registration: registration }
        })
    }
}

fn overloaded(refused: reveille_wake::Refused) -> MessagesError {
    match refused {
        reveille_wake::Refused::Closed => MessagesError::Closed,
        other => MessagesError::Overloaded(other.to_string()),
    }
}
