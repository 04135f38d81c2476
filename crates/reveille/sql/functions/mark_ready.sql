-- Mark partitions with new messages ready for every group of their queue, and return how many
-- partitions these were. Claim rounds call it; pushes never do, so that a push costs the same
-- however many groups there are. Partitions that have had new messages since before the time given
-- are left for another call. Each statement has its own snapshot, and this is needed: groups are
-- read after partition rows, and new_since is cleared only if the row has not moved since it was
-- read. The row of a partition that is being pushed to keeps new_since; nothing here waits for the
-- push.
-- locks: cursors ascending, then partition rows skipping locked ones
create or replace function {schema}.mark_ready(queues int[], since timestamptz default 'epoch')
returns int
language plpgsql
set plan_cache_mode = force_generic_plan
as $reveille$
declare
  parts int[];
  owners int[];
  newest bigint[];
  dues timestamptz[];
begin
  select pg_catalog.array_agg(new_partition.partition order by new_partition.partition),
         pg_catalog.array_agg(new_partition.queue order by new_partition.partition),
         pg_catalog.array_agg(new_partition.newest order by new_partition.partition),
         pg_catalog.array_agg(new_partition.due order by new_partition.partition)
  into parts, owners, newest, dues
  from (
    select partition_row.partition, partition_row.queue, partition_row.next_seq - 1 as newest,
           greatest(partition_row.new_since + queue.delay, partition_row.last_at + queue.window_buffer) as due
    from {schema}.queue
    cross join lateral (
      select *
      from {schema}.partition_row
      -- Two bounds: with one the planner does not use the index of new messages.
      where partition_row.queue = queue.id and partition_row.new_since between since and 'infinity'
      order by partition_row.new_since
      limit 2000
    ) as partition_row
    where queue.id = any (queues)
  ) as new_partition;
  if parts is null then
    return 0;
  end if;
  if pg_catalog.cardinality(parts) > 100 then
    -- A plan that was made while the tables were small and is kept may take seconds for thousands
    -- of partitions.
    perform pg_catalog.set_config('plan_cache_mode', 'force_custom_plan', true);
  end if;

  insert into {schema}.cursor (partition, grp, upto, due_at)
  select new_partition.partition, consumer_group.id, new_partition.newest, new_partition.due
  from unnest(parts, owners, newest, dues) as new_partition (partition, queue, newest, due)
  join {schema}.consumer_group on consumer_group.queue = new_partition.queue
  where not exists (
    select
    from {schema}.cursor_made
    where cursor_made.partition = new_partition.partition and cursor_made.grp = consumer_group.id
  )
  order by new_partition.partition, consumer_group.id;

  perform
  from (
    select new_partition.partition, new_partition.newest, consumer_group.id as grp
    from unnest(parts, owners, newest) as new_partition (partition, queue, newest)
    join {schema}.consumer_group on consumer_group.queue = new_partition.queue
    order by new_partition.partition, consumer_group.id
  ) as place
  cross join lateral {schema}.cursor_of(place.partition, place.grp) as seen
  cross join lateral (
    select
    from {schema}.cursor
    where cursor.ctid = seen.tid and cursor.upto < place.newest
    for update
  ) as cursor;

  -- A statement of its own. While the one before waited for a lock, another statement may have made
  -- a newer version of the cursor, which is not found by its ctid; if that cursor were passed over
  -- here, nothing would mark it ready.
  with behind as materialized (
    select seen.tid, new_partition.newest, new_partition.due
    from unnest(parts, owners, newest, dues) as new_partition (partition, queue, newest, due)
    join {schema}.consumer_group on consumer_group.queue = new_partition.queue
    cross join lateral {schema}.cursor_of(new_partition.partition, consumer_group.id) as seen
    where seen.upto < new_partition.newest
  )
  update {schema}.cursor
  set upto = greatest(cursor.upto, behind.newest),
      due_at = coalesce(cursor.due_at, case when behind.newest > cursor.committed then behind.due end)
  from behind
  where cursor.ctid = behind.tid;

  with passed_on as materialized (
    select seen.tid
    from (
      select *
      from unnest(parts, owners, newest) as given (partition, queue, newest)
      order by given.partition
    ) as new_partition
    cross join lateral {schema}.partition_row_of(new_partition.partition) as seen
    cross join lateral (
      select
      from {schema}.partition_row
      where partition_row.ctid = seen.tid and partition_row.next_seq - 1 = new_partition.newest
      for update skip locked
    ) as partition_row
    -- A cursor that was overtaken in both statements was not marked ready: its partition row keeps
    -- new_since for the next call.
    where not exists (
      select
      from {schema}.consumer_group
      cross join lateral {schema}.cursor_of(new_partition.partition, consumer_group.id) as place
      where consumer_group.queue = new_partition.queue and place.upto < new_partition.newest
    )
  )
  update {schema}.partition_row
  set new_since = null
  from passed_on
  where partition_row.ctid = passed_on.tid;

  return pg_catalog.cardinality(parts);
end
$reveille$;

comment on function {schema}.mark_ready(int[], timestamptz)
  is 'Reveille: marks partitions with new messages ready for every group';
