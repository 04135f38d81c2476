-- The heartbeat's question: which of the waited keys have something to claim, and when. Each row of
-- `waited` is one key: a group of a queue, perhaps in one partition; a queue or a partition that
-- did not exist yet, by its name; or a space, which waits for queues after the newest one it knows,
-- of a namespace and a task, each unless it is null. One step into an index for each key.
-- locks:  nothing
with waited as (
  select *
  from unnest({queues}, {groups}, {partitions}, {queue_names}, {partition_names}, {newest}, {namespaces}, {tasks})
    with ordinality
    as waited (queue, grp, partition, queue_name, partition_name, newest, namespace, task, ordinal)
)
select waited.ordinal, extract(epoch from least(cursor.due_at, new_partition.due_at, sent.due_at) - clock_timestamp()) as due_s
from waited
join {schema}.queue on queue.id = waited.queue and not queue.paused
left join lateral (
  select cursor.due_at
  from {schema}.cursor
  where cursor.grp = waited.grp
    and cursor.due_at is not null
    and (waited.partition is null or cursor.partition = waited.partition)
  order by cursor.due_at
  limit 1
) as cursor on true
left join lateral (
  select greatest(partition_row.new_since + queue.delay, partition_row.last_at + queue.window_buffer) as due_at
  from {schema}.partition_row
  where partition_row.queue = waited.queue
    and partition_row.new_since is not null
    and (waited.partition is null or partition_row.partition = waited.partition)
  order by partition_row.new_since
  limit 1
) as new_partition on true
left join lateral (
  select outbox.at as due_at
  from {schema}.outbox
  where outbox.queue = queue.name
  order by outbox.id
  limit 1
) as sent on true
where waited.grp is not null
  and least(cursor.due_at, new_partition.due_at, sent.due_at) < clock_timestamp() + make_interval(secs => {horizon})
  and not exists (select from {schema}.switch where switch.name = 'pop_paused' and switch.engaged)
union all
select waited.ordinal, -1
from waited
where waited.queue_name is not null
  and (exists (select from {schema}.queue where queue.name = waited.queue_name)
       or exists (select from {schema}.outbox where outbox.queue = waited.queue_name))
union all
select waited.ordinal, -1
from waited
where waited.partition_name is not null
  and exists (
    select
    from {schema}.partition
    where partition.queue = waited.queue
      and partition.name = waited.partition_name
  )
union all
select waited.ordinal, -1
from waited
where waited.newest is not null
  and (
    exists (
      select
      from {schema}.queue
      where queue.id > waited.newest
        and (waited.namespace is null or queue.namespace = waited.namespace)
        and (waited.task is null or queue.task = waited.task)
    )
    or exists (
      -- A queue that does not exist yet, whatever its namespace: a claim round makes it, at the
      -- cost of one round if the queue belongs elsewhere.
      select
      from (select outbox.queue from {schema}.outbox order by outbox.id desc limit 1000) as sent
      where not exists (select from {schema}.queue where queue.name = sent.queue)
    )
  )
