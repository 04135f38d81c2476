-- Create partitions and their queues if they do not exist: by the name of the queue and their own
-- (parallel arrays). Returns them, except those whose queue was deleted meanwhile. A dotted name
-- gives its first part as namespace and the rest as task. Every caller creates names in one order,
-- so that two callers never deadlock. The registration of a group locks the queue's row: it either
-- sees a partition, or the partition gets a higher number.
-- locks: the queues' rows for key share, by name; nothing that exists besides
create or replace function {schema}.ensure_all(in_queues text[], in_partitions text[])
returns table (queue int, partition int, queue_name text, name text, uid uuid)
language plpgsql
as $reveille$
#variable_conflict use_column
declare
  owners int[];
begin
  -- Single rows are looked up one by one, here and below: whatever the statistics are, the plan
  -- cannot join the whole tables.
  insert into {schema}.queue (name, namespace, task)
  select wanted.name,
         case when wanted.name like '%.%' then pg_catalog.split_part(wanted.name, '.', 1) else '' end,
         case when wanted.name like '%.%' then pg_catalog.substr(wanted.name, pg_catalog.strpos(wanted.name, '.') + 1) else '' end
  from (select distinct given.name from pg_catalog.unnest(in_queues) as given (name)) as wanted
  where (select queue.id from {schema}.queue where queue.name = wanted.name) is null
  order by wanted.name
  on conflict do nothing;

  select pg_catalog.array_agg(owner.id order by wanted.place)
  into owners
  from (select * from pg_catalog.unnest(in_queues) with ordinality as given (name, place) order by given.name) as wanted
  left join lateral (
    select queue.id from {schema}.queue where queue.name = wanted.name for key share
  ) as owner on true;

  -- Here a partition gets its only partition row: no index of partition_row is unique.
  with made as (
    insert into {schema}.partition (queue, name)
    select wanted.queue, wanted.name
    from unnest(owners, in_partitions) as wanted (queue, name)
    where wanted.queue is not null
      and (
        select partition.id from {schema}.partition where partition.queue = wanted.queue and partition.name = wanted.name
      ) is null
    order by wanted.queue, wanted.name
    on conflict do nothing
    returning partition.id, partition.queue
  )
  insert into {schema}.partition_row (partition, queue)
  select made.id, made.queue
  from made
  order by made.id;

  return query
  select wanted.queue, found.id, wanted.queue_name, wanted.name, found.uid
  from unnest(owners, in_queues, in_partitions) as wanted (queue, queue_name, name)
  cross join lateral (
    select partition.id, partition.uid
    from {schema}.partition
    where partition.queue = wanted.queue and partition.name = wanted.name
    limit 1
  ) as found;
end
$reveille$;

comment on function {schema}.ensure_all(text[], text[]) is 'Reveille: creates queues and partitions';
