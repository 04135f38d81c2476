//! Where a look claims, and in which order.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::time::{Duration, SystemTime};

use reveille_wake::Stretch;
use tokio::time::Instant;
use tokio_postgres::Row;

use super::Looker;
use super::report::{Next, Report};
use crate::database::{Connection, DatabaseError};
use crate::messages::bell::News;
use crate::messages::error::MessagesError;
use crate::messages::ids::{GroupId, PartitionId, QueueId};
use crate::messages::key::Key;
use crate::messages::outbox;
use crate::messages::pop::claim::Slots;
use crate::messages::pop::marks::{Effort, Marks, START};
use crate::messages::pop::request::{Spot, Wish};
use crate::messages::pop::rows::Claimed;
use crate::messages::statements::{DUES, SPREAD};

/// While consumers are busy with what is due, what was pushed meanwhile is spread this often at least.
const SPREAD_EVERY: Duration = Duration::from_millis(100);
/// Or after so many looks that claimed only where messages were just pushed: what waits elsewhere must not starve.
const DIRECT_MAX: u32 = 16;
/// How many partitions one spread takes of each queue.
const SPREAD_MAX: i32 = 2000;
/// How many times a look searches again because cursors only passed what nobody gets, or the outbox had something: whoever does
/// not wait must not be told "nothing" on account of a deleted message.
const SEARCHES_MAX: usize = 8;
/// How many times a look for namespaces and tasks claims before it leaves the rest to the next.
const SPACE_ROUNDS: usize = 8;
/// More groups and queues than this are not remembered.
const PULSE_MAX: usize = 50_000;

/// What the last looks showed.
#[derive(Debug, Default)]
pub(super) struct Pulse {
    /// Groups that had more due than was wanted: there is no need to search what was pushed.
    backlog: HashSet<GroupId>,
    /// Groups of queues that neither delay nor drop, when they were last asked about.
    plain: HashSet<GroupId>,
    /// Groups of which everything was known, and in which stretch of their keys.
    surveyed: HashMap<GroupId, Stretch>,
    /// When the queues were last searched whole, and how many looks claimed in them without since.
    searched: HashMap<QueueId, (Instant, u32)>,
    marks: Marks,
}

/// How to go about a group.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    /// What is due is enough to go on with.
    Due,
    /// Where messages were just pushed.
    Direct,
    /// Only a whole search will do.
    Search,
}

/// What a look follows without searching, of one group.
#[derive(Default)]
struct Told {
    named: HashSet<PartitionId>,
    left: bool,
    forgotten: bool,
}

impl Told {
    fn hear(&mut self, news: &News) {
        self.named.extend(&news.partitions);
        self.left = news.left;
        self.forgotten |= !news.whole;
    }
}

impl Pulse {
    pub(super) fn note(&mut self, called: &HashSet<&Key>, more: &[Key], report: &Report) {
        if self.backlog.len() > PULSE_MAX {
            self.backlog.clear();
        }
        if self.plain.len() > PULSE_MAX {
            self.plain.clear();
        }
        if self.surveyed.len() > PULSE_MAX {
            self.surveyed.clear();
        }
        self.surveyed.extend(report.surveyed());
        let more: HashSet<&Key> = more.iter().collect();
        for key in called {
            let Some(spot) = Spot::of(key).filter(|spot| spot.partition.is_none()) else { continue };
            match report.is_plain(spot) {
                Some(true) => _ = self.plain.insert(spot.group),
                Some(false) => _ = self.plain.remove(&spot.group),
                None => {}
            }
            if more.contains(key) && report.searched.contains(&spot.group) {
                self.backlog.insert(spot.group);
            } else {
                self.backlog.remove(&spot.group);
            }
        }
    }

    fn spread(&mut self, queues: &[QueueId], now: Instant) {
        if self.searched.len() > PULSE_MAX {
            self.searched.clear();
        }
        self.searched.extend(queues.iter().map(|queue| (*queue, (now, 0))));
    }

    fn way(&self, spot: Spot, now: Instant) -> Way {
        let Some((at, since)) = self.searched.get(&spot.queue).filter(|_| self.plain.contains(&spot.group)) else {
            return Way::Search;
        };
        let lately = now.duration_since(*at) < SPREAD_EVERY;
        match () {
            // What is due elsewhere came first: it must not wait for what is told of just now.
            () if self.backlog.contains(&spot.group) => {
                if lately {
                    Way::Due
                } else {
                    Way::Search
                }
            }
            () if lately || *since < DIRECT_MAX => Way::Direct,
            () => Way::Search,
        }
    }

    /// Whether everything about the group was known when the stretch began in which it is looked at now.
    fn is_surveyed(&self, group: GroupId, report: &Report) -> bool {
        let stretch = report.stretch(group);
        stretch.is_some() && stretch == self.surveyed.get(&group).copied()
    }

    fn passed_over(&mut self, queues: &HashSet<QueueId>) {
        for queue in queues {
            if let Some((_, since)) = self.searched.get_mut(queue) {
                *since += 1;
            }
        }
    }
}

impl Looker {
    /// Claims where the place is known, in plain queues: partitions that were just pushed to, or any of a group that had
    /// more due than was wanted. One statement for nearly everybody, and no search for what is fresh.
    pub(super) async fn claim_known(
        &self,
        connection: &Connection,
        wishes: &mut [Wish],
        report: &mut Report,
    ) -> Result<(), MessagesError> {
        let now = Instant::now();
        let (mut plain, mut general) = (Slots::default(), Slots::default());
        let (mut direct, mut told) = (HashSet::new(), HashMap::<GroupId, Told>::new());
        for (number, wish) in wishes.iter().enumerate().filter(|(_, wish)| wish.is_open()) {
            let [spot @ Spot { partition: None, queue, group }] = wish.spots[..] else { continue };
            let way = self.pulse().way(spot, now);
            let slots = if wish.ask.slots() == 1 && !wish.ask.auto { &mut plain } else { &mut general };
            match way {
                Way::Due => {
                    self.ground.bell.news(queue, group, usize::MAX);
                    slots.any(number, wish, group, self.pulse().marks.glance(group));
                    report.searched.insert(group);
                }
                Way::Direct => {
                    let news = self.ground.bell.news(queue, group, wish.ask.slots());
                    told.entry(group).or_default().hear(&news);
                    for partition in news.partitions {
                        slots.named(number, wish, group, partition);
                    }
                    direct.insert(queue);
                }
                // The search finds what was told as well.
                Way::Search => _ = self.ground.bell.news(queue, group, usize::MAX),
            }
        }
        self.pulse().passed_over(&direct);
        let ground = &self.ground;
        let (claimed, claimed_general) =
            tokio::join!(plain.claim_plain(connection, ground), general.claim(connection, ground));
        let (claimed, claimed_general) = (claimed?, claimed_general?);
        self.take(connection, &claimed, wishes, report).await?;
        self.take(connection, &claimed_general, wishes, report).await?;
        follow(&mut told, claimed.iter().chain(&claimed_general));
        for (group, told) in told {
            if told.named.is_empty() && !told.forgotten && self.pulse().is_surveyed(group, report) {
                report.follow(group, told.left);
            }
        }
        Ok(())
    }

    /// For whoever is still without and asks in one place.
    pub(super) async fn search(
        &self,
        connection: &Connection,
        wishes: &mut [Wish],
        report: &mut Report,
    ) -> Result<(), MessagesError> {
        for _ in 0..SEARCHES_MAX {
            report.begin_search();
            let sent = Box::pin(self.search_once(connection, wishes, report)).await?;
            if !sent.is_empty() {
                self.move_outbox(connection, &sent).await?;
            } else if !(report.has_passed() && wishes.iter().any(|wish| report.seeks(wish))) {
                break;
            }
        }
        Ok(())
    }

    /// Returns the queues whose outbox must be moved before anybody is told that there is nothing.
    async fn search_once(
        &self,
        connection: &Connection,
        wishes: &mut [Wish],
        report: &mut Report,
    ) -> Result<Vec<String>, MessagesError> {
        let (mut any, mut named, mut spots) = (Slots::default(), Slots::default(), Vec::new());
        for (number, wish) in wishes.iter().enumerate().filter(|(_, wish)| report.seeks(wish)) {
            let [spot] = wish.spots[..] else { continue };
            spots.push((number, wish, spot));
        }
        let since = self.since(spots.iter().map(|(.., spot)| *spot));
        for (number, wish, spot) in &spots {
            let slots = if spot.partition.is_none() { &mut any } else { &mut named };
            slots.spot(*number, wish, *spot, since_of(&since, *spot));
        }
        let spots: Vec<Spot> = spots.into_iter().map(|(.., spot)| spot).collect();
        report.searched.extend(spots.iter().filter(|spot| spot.partition.is_none()).map(|spot| spot.group));
        if spots.is_empty() {
            return Ok(Vec::new());
        }
        let spots = distinct(spots);
        let ground = &self.ground;
        let (fresh, claimed, claimed_named, next) = tokio::join!(
            self.spread(connection, &spots, &since),
            any.claim(connection, ground),
            named.claim(connection, ground),
            self.ask(connection, &spots, &since),
        );
        // Every one of them is told what it got before an error of another ends the look.
        let (claimed, claimed_named) = (claimed?, claimed_named?);
        self.take(connection, &claimed, wishes, report).await?;
        self.take(connection, &claimed_named, wishes, report).await?;
        report.fresh.extend(fresh?);
        Ok(report.learn_all(wishes, next?))
    }

    /// For those who ask in many places at once: first where something is due, then there, the first place first.
    pub(super) async fn search_spaces(
        &self,
        connection: &Connection,
        wishes: &mut [Wish],
        report: &mut Report,
    ) -> Result<(), MessagesError> {
        let wide = |wish: &Wish| wish.is_open() && wish.spots.len() > 1;
        let spots = distinct(wishes.iter().filter(|wish| wide(wish)).flat_map(|wish| wish.spots.clone()).collect());
        if spots.is_empty() {
            return Ok(());
        }
        let since = self.since(spots.iter().copied());
        self.learn_due(connection, Reach { spots: &spots, since: &since }, wishes, report).await?;
        let mut tried: HashMap<usize, HashSet<Spot>> = HashMap::new();
        for _ in 0..SPACE_ROUNDS {
            let mut slots = Slots::default();
            for (number, wish) in wishes.iter().enumerate().filter(|(_, wish)| wide(wish)) {
                let tried = tried.entry(number).or_default();
                let next = wish.spots.iter().find(|spot| report.is_due(**spot) && !tried.contains(spot));
                if let Some(spot) = next {
                    tried.insert(*spot);
                    slots.any(number, wish, spot.group, since_of(&since, *spot));
                    report.searched.insert(spot.group);
                }
            }
            if slots.is_empty() {
                break;
            }
            let rows = slots.claim(connection, &self.ground).await?;
            let before = report.take_passed();
            let taken = self.take(connection, &rows, wishes, report).await;
            // Behind what nobody gets there may be a message: whoever does not wait must not be told "nothing" before it.
            for tried in tried.values_mut() {
                tried.retain(|spot| !report.passes(*spot));
            }
            for group in before {
                report.passed(group);
            }
            taken?;
        }
        for (number, tried) in &tried {
            let Some(wish) = wishes.get(*number).filter(|wish| wide(wish)) else { continue };
            let untried = wish.spots.iter().filter(|spot| report.is_due(**spot) && !tried.contains(spot));
            report.untried.extend(untried.copied().collect::<Vec<_>>());
        }
        let next = self.ask(connection, &spots, &since).await?;
        report.learn_all(wishes, next);
        Ok(())
    }

    async fn learn_due(
        &self,
        connection: &Connection,
        Reach { spots, since }: Reach<'_>,
        wishes: &[Wish],
        report: &mut Report,
    ) -> Result<(), MessagesError> {
        let (fresh, next) = tokio::join!(self.spread(connection, spots, since), self.ask(connection, spots, since));
        report.fresh.extend(fresh?);
        let sent = report.learn_all(wishes, next?);
        if sent.is_empty() {
            return Ok(());
        }
        self.move_outbox(connection, &sent).await?;
        let (fresh, next) = tokio::join!(self.spread(connection, spots, since), self.ask(connection, spots, since));
        report.fresh.extend(fresh?);
        report.learn_all(wishes, next?);
        Ok(())
    }

    /// Tells cursors what was pushed to the queues of these spots; returns the queues of which more is left than that.
    async fn spread(
        &self,
        connection: &Connection,
        spots: &[Spot],
        since: &Since,
    ) -> Result<Vec<QueueId>, DatabaseError> {
        let mut queues: Vec<QueueId> = spots.iter().map(|spot| spot.queue).collect();
        queues.sort_unstable();
        queues.dedup();
        self.pulse().spread(&queues, Instant::now());
        let ids: Vec<i32> = queues.iter().map(|queue| queue.0).collect();
        let since = spots.iter().map(|spot| since_of(since, *spot)).min().unwrap_or(START);
        let row = connection.query_opt(&SPREAD, &[&ids, &since]).await?;
        let partitions = row.map_or(0, |row| row.get::<_, i32>(0));
        Ok(if partitions >= SPREAD_MAX { queues } else { Vec::new() })
    }

    /// Where the search of each of these begins. Claims and the question for the next due must agree on it, or what the one
    /// does not see would be due to the other, again and again.
    fn since(&self, spots: impl Iterator<Item = Spot>) -> Since {
        let (pulse, now) = (self.pulse(), std::time::Instant::now());
        spots
            .filter(|spot| spot.partition.is_none())
            .map(|spot| (spot.group, pulse.marks.search(spot.group, now)))
            .collect()
    }

    /// When the spots have something to claim, and whether the outbox has something for their queues.
    async fn ask(
        &self,
        connection: &Connection,
        spots: &[Spot],
        since: &Since,
    ) -> Result<Vec<(Spot, Next, Option<String>)>, DatabaseError> {
        let groups: Vec<i32> = spots.iter().map(|spot| spot.group.0).collect();
        let partitions: Vec<Option<i32>> =
            spots.iter().map(|spot| spot.partition.map(|partition| partition.0)).collect();
        let times: Vec<SystemTime> = spots.iter().map(|spot| since_of(since, *spot)).collect();
        let rows = connection.query(&DUES, &[&groups, &partitions, &times]).await?;
        let (mut pulse, now) = (self.pulse(), std::time::Instant::now());
        let read = |row: &Row| {
            let spot = *spots.get(usize::try_from(row.get::<_, i32>(0) - 1).ok()?)?;
            let mut next = Next { known: row.get(1), due_s: row.get(2), plain: row.get(4) };
            if since_of(since, spot) != START {
                // Not everything was read: somebody must come back for the rest.
                let wait = pulse.marks.wait(spot.group, now).as_secs_f64();
                next.due_s = Some(next.due_s.map_or(wait, |due_s| due_s.min(wait)));
            } else if spot.partition.is_none() {
                let took = Duration::try_from_secs_f64(row.get("took_s")).unwrap_or_default();
                let effort = Effort { entries: row.get("entries"), took };
                pulse.marks.note(spot.group, now, effort, row.get("place"));
            }
            Some((spot, next, row.get(3)))
        };
        Ok(rows.iter().filter_map(read).collect())
    }

    /// Brings what foreign transactions have pushed into the logs. Other groups and nodes wait for it too.
    pub(super) async fn move_outbox(&self, connection: &Connection, queues: &[String]) -> Result<(), MessagesError> {
        let names: Vec<&str> = queues.iter().map(String::as_str).collect();
        let moved = outbox::move_ready(connection, &names).await?;
        for (queue, partition) in &moved {
            self.ground.bell.pushed(*queue, &[*partition]);
        }
        Ok(())
    }
}

/// Since when the groups are searched for what is due.
type Since = HashMap<GroupId, SystemTime>;

/// Where to search, and since when.
#[derive(Clone, Copy)]
struct Reach<'r> {
    spots: &'r [Spot],
    since: &'r Since,
}

fn since_of(since: &Since, spot: Spot) -> SystemTime {
    since.get(&spot.group).copied().filter(|_| spot.partition.is_none()).unwrap_or(START)
}

/// Crosses off the partitions that were leased: what they have left is rung for when their leases end.
fn follow<'a>(told: &mut HashMap<GroupId, Told>, rows: impl Iterator<Item = &'a Row>) {
    for claimed in rows.map(Claimed).filter(|claimed| claimed.is_leased() && !claimed.has_more()) {
        if let Some(told) = told.get_mut(&claimed.group()) {
            told.named.remove(&claimed.partition());
        }
    }
}

fn distinct(spots: Vec<Spot>) -> Vec<Spot> {
    let mut seen = HashSet::with_capacity(spots.len());
    spots.into_iter().filter(|spot| seen.insert(*spot)).collect()
}

impl Report {
    /// Returns the queues that were sent something, if somebody is still without.
    fn learn_all(&mut self, wishes: &[Wish], next: Vec<(Spot, Next, Option<String>)>) -> Vec<String> {
        let hungry: HashSet<QueueId> =
            wishes.iter().filter(|wish| wish.is_open()).flat_map(|wish| &wish.spots).map(|spot| spot.queue).collect();
        let mut sent = BTreeSet::new();
        for (spot, next, queue) in next {
            self.learn(spot, next);
            sent.extend(queue.filter(|_| hungry.contains(&spot.queue)));
        }
        sent.into_iter().collect()
    }
}
