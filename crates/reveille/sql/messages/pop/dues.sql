-- When groups have something to claim next: the groups $1, each in any partition or in the
-- partition $2. $3 says from which time on to read: from 'epoch' the next due time, also in the
-- future; from any other time only what is due until now. Returns for each, by its position `o`:
--   known      whether group and queue exist
--   due_s      in how many seconds something can be claimed, negative if it can be already; null
--              for nothing, or during a pause
--   sent       the name of its queue, if the outbox has messages that are not in the log yet
--   plain      whether its queue neither delays nor expires messages
--   took_s     how long the reading took
--   entries    how many index entries of due cursors and of new messages were read, dead ones too
--   place      before this time nothing is due or new, except what is committed more than a second
--              late
-- locks:  nothing
-- plan:   index scan using cursor_due
select asked.o::int as o,
       queue.id is not null as known,
       case when not (queue.paused or paused.engaged) then
         extract(epoch from case when asked.partition is null then soonest.due_at else named.due_at end - clock_timestamp())::float8
       end as due_s,
       case when exists (select from {schema}.outbox where outbox.queue = queue.name) then queue.name end as sent,
       coalesce(queue.delay = '0' and queue.window_buffer = '0' and queue.ttl = '0', false) as plain,
       extract(epoch from clock_timestamp() - statement_timestamp())::float8 as took_s,
       pg_stat_get_xact_tuples_returned($reveille${schema}.cursor_due$reveille$::regclass)
         + pg_stat_get_xact_tuples_returned($reveille${schema}.partition_row_new$reveille$::regclass) - before.entries as entries,
       least(soonest.due_at, new_partition.new_since, statement_timestamp() - interval '1 second') as place
from unnest($1::int[], $2::int[], $3::timestamptz[]) with ordinality as asked (grp, partition, since, o)
cross join lateral (
  select coalesce((select switch.engaged from {schema}.switch where switch.name = 'pop_paused'), false) as engaged
) as paused
left join lateral (
  select queue.id, queue.name, queue.paused, queue.delay, queue.window_buffer, queue.ttl
  from {schema}.consumer_group
  join {schema}.queue on queue.id = consumer_group.queue
  where consumer_group.id = asked.grp
  limit 1
) as queue on true
cross join lateral (
  select asked.o,
         pg_stat_get_xact_tuples_returned($reveille${schema}.cursor_due$reveille$::regclass)
           + pg_stat_get_xact_tuples_returned($reveille${schema}.partition_row_new$reveille$::regclass) as entries
) as before
left join lateral (
  select cursor.due_at
  from {schema}.cursor
  where cursor.grp = asked.grp
    -- So that the entries are counted before this is read.
    and before.entries >= 0
    and cursor.due_at >= asked.since
    and cursor.due_at <= case when asked.since = 'epoch' then 'infinity' else statement_timestamp() end
  order by cursor.due_at
  limit 1
) as soonest on asked.partition is null
left join lateral (
  select partition_row.new_since
  from {schema}.partition_row
  where partition_row.queue = queue.id
    and before.entries >= 0
    and partition_row.new_since between asked.since and 'infinity'
  order by partition_row.new_since
  limit 1
) as new_partition on asked.partition is null
left join lateral {schema}.cursor_of(asked.partition, asked.grp) as named on true
