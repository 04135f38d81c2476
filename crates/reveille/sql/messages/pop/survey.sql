-- What the heartbeat asks: which of the waited keys have something to claim, and when. A key is queue/group,
-- queue/group/partition, q/name of a queue that is not there yet, p/queue/name of a partition that is not there yet, or
-- s/newest known queue/length of the namespace (-1 for any)/namespace, and t and a task unless that is any. One step into an
-- index for each.
-- locks:  nothing
select waited.key, extract(epoch from least(cursor.due_at, fresh.due_at, sent.due_at) - clock_timestamp())::float8 as due_s
from (
  select key, split_part(key, '/', 1)::int as queue, split_part(key, '/', 2)::int as grp,
         nullif(split_part(key, '/', 3), '')::int as partition
  from unnest({keys}) as key
  where key ~ '^[0-9]{1,10}/[0-9]{1,10}(/[0-9]{1,10})?$'
) as waited
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
  select greatest(head.fresh_at + queue.delay, head.last_at + queue.window_buffer) as due_at
  from {schema}.head
  where head.queue = waited.queue
    and head.fresh_at is not null
    and (waited.partition is null or head.partition = waited.partition)
  order by head.fresh_at
  limit 1
) as fresh on true
left join lateral (
  select outbox.at as due_at
  from {schema}.outbox
  where outbox.queue = queue.name
  order by outbox.id
  limit 1
) as sent on true
where least(cursor.due_at, fresh.due_at, sent.due_at) < clock_timestamp() + make_interval(secs => {horizon})
  and not exists (select from {schema}.switch where switch.name = 'pop_paused' and switch.engaged)
union all
select key, -1::float8
from unnest({keys}) as key
where key like 'q/%'
  and (exists (select from {schema}.queue where queue.name = substr(key, 3))
       or exists (select from {schema}.outbox where outbox.queue = substr(key, 3)))
union all
select waited.key, -1::float8
from (
  select key, split_part(key, '/', 2)::int as queue, substr(key, length(split_part(key, '/', 2)) + 4) as name
  from unnest({keys}) as key
  where key ~ '^p/[0-9]{1,10}/'
) as waited
where exists (select from {schema}.partition where partition.queue = waited.queue and partition.name = waited.name)
union all
select waited.key, -1::float8
from (
  select key, parts[1]::int as newest, parts[2]::int as length, parts[3] as rest
  from unnest({keys}) as key
  cross join lateral regexp_match(key, '^s/([0-9]{1,10})/(-?[0-9]{1,4})/(.*)$') as parts
  where key like 's/%'
) as waited
where exists (
  select
  from {schema}.queue
  where queue.id > waited.newest
    and (waited.length < 0 or queue.namespace = left(waited.rest, waited.length))
    and (length(waited.rest) <= greatest(waited.length, 0)
         or queue.task = substr(waited.rest, greatest(waited.length, 0) + 2))
)
or exists (
  -- One that is not there yet, in whatever namespace: the look makes it if it is in this one, and is only one look if not.
  select
  from (select outbox.queue from {schema}.outbox order by outbox.id desc limit 1000) as sent
  where not exists (select from {schema}.queue where queue.name = sent.queue)
)
