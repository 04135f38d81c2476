//! The end of a run: the database must show that nothing is left.

use std::path::Path;
use std::time::Duration;

use tokio::time::{Instant, sleep};
use tokio_postgres::Client;

use super::child::payload_key;
use super::faults::World;
use super::history::{Count, Event, History, Place};

/// What is not settled, or leased: queue, partition, group, how many, leased.
const LEFT: &str = "
    select queue.name, partition.name, consumer_group.name,
           (partition_row.next_seq - 1 - coalesce(cursor.committed, 0))::bigint, cursor.lease_until is not null
    from reveille.consumer_group
    join reveille.queue on queue.id = consumer_group.queue
    join reveille.partition on partition.queue = queue.id
    join reveille.partition_row on partition_row.partition = partition.id
    left join reveille.cursor on cursor.partition = partition_row.partition and cursor.grp = consumer_group.id
    where partition_row.next_seq - 1 > coalesce(cursor.committed, 0) or cursor.lease_until is not null";
/// What was pushed in SQL and is in no partition yet, jobs that have not ended, orchestrations that
/// run.
const WAITING: &str = "
    select (select count(*) from reveille.outbox) + (select count(*) from reveille.job)
         + (select count(*) from duroxide.mailbox as mailbox
            where not exists (select from duroxide.execution
                              where execution.instance_id = mailbox.instance_id and execution.status = 'Completed'))";
/// What was done for good, and how often.
const EFFECTS: &str = "
    select queue, key, count(*) from chaos_effect group by queue, key
    union all
    select 'flows', substr(instance_id, 6)::bigint, 1 from duroxide.execution
    where status = 'Completed' and output = substr(instance_id, 6) || ': step step ' || substr(instance_id, 6)";
/// Groups that have undelivered messages and neither a due time nor the mark for new messages:
/// none, in any snapshot.
const STRANDED: &str = "
    select count(*) from reveille.partition_row join reveille.cursor on cursor.partition = partition_row.partition
    where partition_row.next_seq - 1 > cursor.committed and cursor.due_at is null and partition_row.new_since is null";
const BACKLOG: &str = "
    select coalesce(max(behind), 0)::bigint from (
      select sum(partition_row.next_seq - 1 - cursor.committed) as behind
      from reveille.cursor join reveille.partition_row on partition_row.partition = cursor.partition group by cursor.grp) as groups";
const BURIED: &str = "
    select queue.name, consumer_group.name, dead_letter.payload
    from reveille.dead_letter
    join reveille.queue on queue.id = dead_letter.queue
    join reveille.consumer_group on consumer_group.id = dead_letter.grp";

/// Waits until every group has settled everything; returns whether that happened in time.
pub(crate) async fn drained(world: &World, patience: Duration) -> anyhow::Result<bool> {
    let end = Instant::now() + patience;
    let admin = world.postgres.admin().await?;
    while Instant::now() < end {
        let left = admin.client.query(LEFT, &[]).await?.len();
        let waiting: i64 = admin.client.query_one(WAITING, &[]).await?.get(0);
        if left == 0 && waiting == 0 {
            return Ok(true);
        }
        sleep(Duration::from_millis(200)).await;
    }
    Ok(false)
}

/// How far the slowest group is behind.
pub(crate) async fn backlog(client: &Client) -> anyhow::Result<u64> {
    Ok(client.query_one(BACKLOG, &[]).await?.get::<_, i64>(0).unsigned_abs())
}

/// How many groups have messages that no consumer will be woken for, in this snapshot.
pub(crate) async fn stranded(client: &Client) -> anyhow::Result<u64> {
    Ok(client.query_one(STRANDED, &[]).await?.get::<_, i64>(0).unsigned_abs())
}

/// Records what the database and the logs show when all is over.
pub(crate) async fn record_end(world: &World, dir: &Path) -> anyhow::Result<()> {
    let (admin, history) = (world.postgres.admin().await?, &world.history);
    for row in admin.client.query(LEFT, &[]).await? {
        let (queue, partition, group): (String, String, String) = (row.get(0), row.get(1), row.get(2));
        let (pending, leased) = (row.get::<_, i64>(3).unsigned_abs(), row.get(4));
        history.note(Event::Left { place: Place::new(queue, partition), group, pending, leased });
    }
    for row in admin.client.query(BURIED, &[]).await? {
        if let Some(key) = payload_key(row.get(2)) {
            history.note(Event::Buried { queue: row.get(0), group: row.get(1), key });
        }
    }
    for row in admin.client.query(EFFECTS, &[]).await? {
        let (key, times) = (row.get::<_, i64>(1).unsigned_abs(), u32::try_from(row.get::<_, i64>(2))?);
        history.note(Event::Effect { queue: row.get(0), key, times });
    }
    count(history, Count::Repairs, stranded(&admin.client).await?);
    count(history, Count::Repairs, logged(dir, "found undelivered messages that no consumer would be woken for"));
    count(history, Count::Panics, logged(dir, "panicked at"));
    let clusters = std::iter::once(&world.postgres).chain(&world.standby);
    count(history, Count::Deadlocks, clusters.map(|cluster| cluster.logged("deadlock detected")).sum());
    Ok(())
}

pub(crate) fn count(history: &History, what: Count, count: u64) {
    if count > 0 {
        history.note(Event::Counted { what, count });
    }
}

/// How often the servers' logs have `words`.
fn logged(dir: &Path, words: &str) -> u64 {
    let logs = std::fs::read_dir(dir).into_iter().flatten().filter_map(Result::ok);
    let logs = logs.filter(|entry| entry.file_name().to_string_lossy().starts_with("server-"));
    logs.map(|entry| std::fs::read(entry.path()).unwrap_or_default())
        .map(|text| String::from_utf8_lossy(&text).matches(words).count() as u64)
        .sum()
}
