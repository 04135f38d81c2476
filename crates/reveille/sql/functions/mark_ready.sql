-- Tell every group's cursor of what was pushed to the queues, and return how many partitions that
-- were. Consumers run it when their due list is short; pushes never do, so that a push costs the
-- same however many groups there are. What is fresh since before the time given is left for another
-- call. Each statement has its own snapshot, and that is the point: groups are read after heads,
-- and a head is called told only if it has not moved since it was read. A head busy with a push
-- stays fresh; nothing here waits for one.
-- locks: cursors ascending, then heads skipping locked ones
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
  select pg_catalog.array_agg(new_partition.partition order by new_partition.partition), pg_catalog.array_agg(new_partition.queue order by new_partition.partition),
         pg_catalog.array_agg(new_partition.newest order by new_partition.partition), pg_catalog.array_agg(new_partition.due order by new_partition.partition)
  into parts, owners, newest, dues
  from (
    select partition_row.partition, partition_row.queue, partition_row.next_seq - 1 as newest,
           greatest(partition_row.new_since + queue.delay, partition_row.last_at + queue.window_buffer) as due
    from {schema}.queue
    cross join lateral (
      select *
      from {schema}.partition_row
      -- Two bounds: the planner takes one of them for no reason to use the index of what is fresh.
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
  select told.partition, consumer_group.id, told.newest, told.due
  from unnest(parts, owners, newest, dues) as told (partition, queue, newest, due)
  join {schema}.consumer_group on consumer_group.queue = told.queue
  where not exists (
    select from {schema}.cursor_made where cursor_made.partition = told.partition and cursor_made.grp = consumer_group.id
  )
  order by told.partition, consumer_group.id;

  perform
  from (
    select told.partition, told.newest, consumer_group.id as grp
    from unnest(parts, owners, newest) as told (partition, queue, newest)
    join {schema}.consumer_group on consumer_group.queue = told.queue
    order by told.partition, consumer_group.id
  ) as told
  cross join lateral {schema}.cursor_of(told.partition, told.grp) as seen
  cross join lateral (
    select
    from {schema}.cursor
    where cursor.ctid = seen.tid and cursor.upto < told.newest
    for update
  ) as cursor;

  -- A statement of its own: a version of which somebody made a newer one while we waited for its
  -- lock is not found by its place any more, and a cursor that is passed over here is told by
  -- nobody.
  with behind as materialized (
    select seen.tid, told.newest, told.due
    from unnest(parts, owners, newest, dues) as told (partition, queue, newest, due)
    join {schema}.consumer_group on consumer_group.queue = told.queue
    cross join lateral {schema}.cursor_of(told.partition, consumer_group.id) as seen
    where seen.upto < told.newest
  )
  update {schema}.cursor
  set upto = greatest(cursor.upto, behind.newest),
      due_at = coalesce(cursor.due_at, case when behind.newest > cursor.committed then behind.due end)
  from behind
  where cursor.ctid = behind.tid;

  with told as materialized (
    select seen.tid
    from (
      select * from unnest(parts, owners, newest) as told (partition, queue, newest) order by told.partition
    ) as told
    cross join lateral {schema}.partition_row_of(told.partition) as seen
    cross join lateral (
      select
      from {schema}.partition_row
      where partition_row.ctid = seen.tid and partition_row.next_seq - 1 = told.newest
      for update skip locked
    ) as partition_row
    -- A cursor that was overtaken in both statements was told nothing: its head stays fresh for the
    -- next call.
    where not exists (
      select
      from {schema}.consumer_group
      cross join lateral {schema}.cursor_of(told.partition, consumer_group.id) as place
      where consumer_group.queue = told.queue and place.upto < told.newest
    )
  )
  update {schema}.partition_row
  set new_since = null
  from told
  where partition_row.ctid = told.tid;

  return pg_catalog.cardinality(parts);
end
$reveille$;

comment on function {schema}.mark_ready(int[], timestamptz) is 'Reveille: tells every group of what was pushed';
