-- Names that mean something else now, each a row with its place `position` in the parameters:
--   'queue'      a queue named $1 that exists; or, with its name in `outbox_queue`, one that does
--                not exist though the outbox has messages for it
--   'partition'  a partition named $3 of the queue $2 that exists, or whose queue does not
--   'space'      the namespace $4 and task $5, null for any, with its queues as they are now
--   'outbox'     without a place: a queue, named in `outbox_queue`, that does not exist though the
--                outbox has messages for it, and that will be in one of those namespaces and tasks
-- While pushes are paused nothing can be moved out of the outbox, so `outbox_queue` is always null.
-- locks:  nothing
with recursive moving as materialized (
  select not exists (select from {schema}.switch where switch.name = 'push_paused' and switch.engaged) as possible
), outbox_name as (
  -- The queues that have messages in the outbox, in order. This is a loose index scan, one step
  -- into the index for each name: PostgreSQL has none of its own.
  (
    select outbox.queue
    from {schema}.outbox
    where cardinality($4::text[]) > 0 and (select moving.possible from moving)
    order by outbox.queue
    limit 1
  )
  union all
  select (select next.queue from {schema}.outbox as next where next.queue > outbox_name.queue order by next.queue limit 1)
  from outbox_name
  where outbox_name.queue is not null
)
select 'queue' as kind, waited.position::int as position, null::int[] as queues,
       case when queue.id is null then waited.name end as outbox_queue
from unnest($1::text[]) with ordinality as waited (name, position)
cross join moving
left join {schema}.queue on queue.name = waited.name
where queue.id is not null
  or (moving.possible and exists (select from {schema}.outbox where outbox.queue = waited.name))
union all
select 'outbox', 0, null, pending.queue
from (select outbox_name.queue from outbox_name where outbox_name.queue is not null limit 1000) as pending
where not exists (select from {schema}.queue where queue.name = pending.queue)
  -- Its namespace and task will be those that the function ensure_all takes from a dotted name:
  -- change both.
  and exists (
    select
    from unnest($4::text[], $5::text[]) as waited (namespace, task)
    where (waited.namespace is null
           or waited.namespace = case when pending.queue like '%.%' then split_part(pending.queue, '.', 1) else '' end)
      and (waited.task is null
           or waited.task = case
             when pending.queue like '%.%' then substr(pending.queue, strpos(pending.queue, '.') + 1)
             else ''
           end)
  )
union all
select 'partition', waited.position::int, null, null
from unnest($2::int[], $3::text[]) with ordinality as waited (queue, name, position)
where exists (select from {schema}.partition where partition.queue = waited.queue and partition.name = waited.name)
  or not exists (select from {schema}.queue where queue.id = waited.queue)
union all
select 'space', waited.position::int, array(
         select first.id
         from (
           select queue.id
           from {schema}.queue
           where (waited.namespace is null or queue.namespace = waited.namespace)
             and (waited.task is null or queue.task = waited.task)
           order by queue.priority desc, queue.id
           limit 1000
         ) as first
         order by first.id
       ), null
from unnest($4::text[], $5::text[]) with ordinality as waited (namespace, task, position)
