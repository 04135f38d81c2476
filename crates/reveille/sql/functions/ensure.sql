-- Make the queue and its partitions if they are not there, and return them. A dotted name gives its first part as namespace
-- and the rest as task. Whoever registers a group holds the queue's row: a partition is either seen by it, or is later.
-- locks: the queue's row for key share; nothing that exists besides
create or replace function {schema}.ensure(in_queue text, in_partitions text[])
returns table (queue int, partition int, name text, uid uuid)
language plpgsql
as $reveille$
#variable_conflict use_column
declare
  owner int;
begin
  select queue.id into owner from {schema}.queue where queue.name = in_queue for key share;
  if not found then
    insert into {schema}.queue (name, namespace, task)
    values (
      in_queue,
      case when in_queue like '%.%' then pg_catalog.split_part(in_queue, '.', 1) else '' end,
      case when in_queue like '%.%' then pg_catalog.substr(in_queue, pg_catalog.strpos(in_queue, '.') + 1) else '' end
    )
    on conflict do nothing;
    select queue.id into strict owner from {schema}.queue where queue.name = in_queue for key share;
  end if;

  -- A partition has one head because it is made with it: no index of heads is unique.
  with made as (
    insert into {schema}.partition (queue, name)
    select owner, wanted.name
    from (select distinct pg_catalog.unnest(in_partitions) as name) as wanted
    where not exists (select from {schema}.partition where partition.queue = owner and partition.name = wanted.name)
    order by wanted.name
    on conflict do nothing
    returning partition.id
  )
  insert into {schema}.head (partition, queue)
  select made.id, owner
  from made
  order by made.id;

  return query
  select owner, partition.id, partition.name, partition.uid
  from {schema}.partition
  where partition.queue = owner and partition.name = any (in_partitions);
end
$reveille$;

comment on function {schema}.ensure(text, text[]) is 'Reveille: makes a queue and partitions';
