-- Names that mean something else now: queues named $1 that exist ('queue'); partitions named $3 of
-- the queues $2 that exist, or whose queue does not ('partition'); and the queues of each namespace
-- $4 and task $5, null for any ('space'). `o` is the position in the parameters. `sent` is the name
-- of a queue that does not exist though the outbox has messages for it: of those named $1, and of
-- those that will be in one of the namespaces and tasks ('sent'). None while pushes are paused,
-- because then nothing can be moved.
-- locks:  nothing
with recursive moving as materialized (
  select not exists (select from {schema}.switch where switch.name = 'push_paused' and switch.engaged) as possible
), named as (
  -- One step into the index for each name.
  (
    select outbox.queue
    from {schema}.outbox
    where cardinality($4::text[]) > 0 and (select moving.possible from moving)
    order by outbox.queue
    limit 1
  )
  union all
  select (select next.queue from {schema}.outbox as next where next.queue > named.queue order by next.queue limit 1)
  from named
  where named.queue is not null
)
select 'queue' as kind, asked.o::int as o, null::int[] as queues,
       case when queue.id is null then asked.name end as sent
from unnest($1::text[]) with ordinality as asked (name, o)
cross join moving
left join {schema}.queue on queue.name = asked.name
where queue.id is not null
  or (moving.possible and exists (select from {schema}.outbox where outbox.queue = asked.name))
union all
select 'sent', 0, null, pending.queue
from (select named.queue from named where named.queue is not null limit 1000) as pending
where not exists (select from {schema}.queue where queue.name = pending.queue)
  -- Its namespace and task, as the function ensure_all sets them.
  and exists (
    select
    from unnest($4::text[], $5::text[]) as asked (namespace, task)
    where (asked.namespace is null
           or asked.namespace = case when pending.queue like '%.%' then split_part(pending.queue, '.', 1) else '' end)
      and (asked.task is null
           or asked.task = case when pending.queue like '%.%' then substr(pending.queue, strpos(pending.queue, '.') + 1) else '' end)
  )
union all
select 'partition', asked.o::int, null, null
from unnest($2::int[], $3::text[]) with ordinality as asked (queue, name, o)
where exists (select from {schema}.partition where partition.queue = asked.queue and partition.name = asked.name)
  or not exists (select from {schema}.queue where queue.id = asked.queue)
union all
select 'space', asked.o::int, array(
         select first.id
         from (
           select queue.id
           from {schema}.queue
           where (asked.namespace is null or queue.namespace = asked.namespace)
             and (asked.task is null or queue.task = asked.task)
           order by queue.priority desc, queue.id
           limit 1000
         ) as first
         order by first.id
       ), null
from unnest($4::text[], $5::text[]) with ordinality as asked (namespace, task, o)
