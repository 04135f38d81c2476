-- Tell every group's cursor of what was pushed to the queues, and return how many partitions that were. Consumers run it
-- when their due list is short; pushes never do, so that a push costs the same however many groups there are.
-- Each statement has its own snapshot, and that is the point: groups are read after heads, and a head is called told only if
-- it has not moved since it was read. A head busy with a push stays fresh; nothing here waits for one.
-- locks: cursors ascending, then heads skipping locked ones
create or replace function {schema}.spread(queues int[])
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
  select array_agg(fresh.partition order by fresh.partition), array_agg(fresh.queue order by fresh.partition),
         array_agg(fresh.newest order by fresh.partition), array_agg(fresh.due order by fresh.partition)
  into parts, owners, newest, dues
  from (
    select head.partition, head.queue, head.next_seq - 1 as newest,
           greatest(head.fresh_at + queue.delay, head.last_at + queue.window_buffer) as due
    from {schema}.queue
    cross join lateral (
      select *
      from {schema}.head
      where head.queue = queue.id and head.fresh_at is not null
      order by head.fresh_at
      limit 2000
    ) as head
    where queue.id = any (queues)
  ) as fresh;
  if parts is null then
    return 0;
  end if;
  if cardinality(parts) > 100 then
    -- A plan that was made while the tables were small and is kept may take seconds for thousands of partitions.
    perform set_config('plan_cache_mode', 'force_custom_plan', true);
  end if;

  insert into {schema}.cursor (partition, grp, upto, due_at)
  select told.partition, consumer_group.id, told.newest, told.due
  from unnest(parts, owners, newest, dues) as told (partition, queue, newest, due)
  join {schema}.consumer_group on consumer_group.queue = told.queue
  where not exists (
    select from {schema}.cursor where cursor.partition = told.partition and cursor.grp = consumer_group.id
  )
  order by told.partition, consumer_group.id
  on conflict do nothing;

  with behind as materialized (
    select cursor.partition, cursor.grp, told.newest, told.due
    from unnest(parts, owners, newest, dues) as told (partition, queue, newest, due)
    join {schema}.consumer_group on consumer_group.queue = told.queue
    join {schema}.cursor on cursor.partition = told.partition and cursor.grp = consumer_group.id
    where cursor.upto < told.newest
    order by cursor.partition, cursor.grp
    for update of cursor
  )
  update {schema}.cursor
  set upto = behind.newest,
      due_at = coalesce(cursor.due_at, case when behind.newest > cursor.committed then behind.due end)
  from behind
  where cursor.partition = behind.partition and cursor.grp = behind.grp and cursor.upto < behind.newest;

  with told as materialized (
    select head.partition
    from unnest(parts, newest) as told (partition, newest)
    join {schema}.head on head.partition = told.partition
    where head.next_seq - 1 = told.newest
    order by head.partition
    for update of head skip locked
  )
  update {schema}.head
  set fresh_at = null
  from told
  where head.partition = told.partition;

  return cardinality(parts);
end
$reveille$;

comment on function {schema}.spread(int[]) is 'Reveille: tells every group of what was pushed';
