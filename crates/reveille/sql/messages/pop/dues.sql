-- When groups have something to claim next: the groups $1, each in any partition or in the
-- partition $2. $3 says from which time on to read: from 'epoch' the next due time, also in the
-- future; from any other time only what is due until now. Returns for each:
--   position      its place in the parameters
--   exists        whether group and queue exist
--   due_s         in how many seconds something can be claimed, negative if it can be already; null
--                 for nothing, or during a pause
--   outbox        the name of its queue, if the outbox has messages that are not in the log yet
--   plain         whether its queue neither delays nor expires messages
--   took_s        how long the reading took
--   entries       how many index entries of due cursors and of new messages were read, also dead
--                 ones
--   empty_before  before this time nothing is due or new, except what is committed more than a
--                 second late
--
-- Steps, for each group and partition:
--   queue         its queue, if both exist
--   before        how many entries this transaction has read until here
--   next_cursor   the next due cursor of the group, in any partition
--   next_new      the partition that has had new messages for longest
--   named         the cursor of the one partition
--
-- Entries are counted by the statistics of this transaction: what they have grown by while
-- next_cursor and next_new were read. Both mention before.entries, so that PostgreSQL reads that
-- first. A count that is too low shows in the test
-- what_fell_due_before_the_low_water_mark_is_found_by_a_waiting_pop, which needs a mark.
-- locks:  nothing
-- plan:   index scan using cursor_due
select target.position::int as position,
       queue.id is not null as exists,
       case when not (queue.paused or paused.engaged) then
         extract(
           epoch from case when target.partition is null then next_cursor.due_at else named.due_at end - clock_timestamp()
         )::float8
       end as due_s,
       case when exists (select from {schema}.outbox where outbox.queue = queue.name) then queue.name end as outbox,
       coalesce(queue.delay = '0' and queue.window_buffer = '0' and queue.ttl = '0', false) as plain,
       extract(epoch from clock_timestamp() - statement_timestamp())::float8 as took_s,
       pg_stat_get_xact_tuples_returned($reveille${schema}.cursor_due$reveille$::regclass)
         + pg_stat_get_xact_tuples_returned($reveille${schema}.partition_row_new$reveille$::regclass)
         - before.entries as entries,
       least(next_cursor.due_at, next_new.new_since, statement_timestamp() - interval '1 second') as empty_before
from unnest($1::int[], $2::int[], $3::timestamptz[]) with ordinality as target (grp, partition, since, position)
cross join lateral (
  select coalesce((select switch.engaged from {schema}.switch where switch.name = 'pop_paused'), false) as engaged
) as paused
left join lateral (
  select queue.id, queue.name, queue.paused, queue.delay, queue.window_buffer, queue.ttl
  from {schema}.consumer_group
  join {schema}.queue on queue.id = consumer_group.queue
  where consumer_group.id = target.grp
  limit 1
) as queue on true
cross join lateral (
  select target.position,
         pg_stat_get_xact_tuples_returned($reveille${schema}.cursor_due$reveille$::regclass)
           + pg_stat_get_xact_tuples_returned($reveille${schema}.partition_row_new$reveille$::regclass) as entries
) as before
left join lateral (
  select cursor.due_at
  from {schema}.cursor
  where cursor.grp = target.grp
    -- Always true, so that the entries are counted before this is read.
    and before.entries >= 0
    and cursor.due_at >= target.since
    and cursor.due_at <= case when target.since = 'epoch' then 'infinity' else statement_timestamp() end
  order by cursor.due_at
  limit 1
) as next_cursor on target.partition is null
left join lateral (
  select partition_row.new_since
  from {schema}.partition_row
  where partition_row.queue = queue.id
    -- Always true, as above.
    and before.entries >= 0
    and partition_row.new_since between target.since and 'infinity'
  order by partition_row.new_since
  limit 1
) as next_new on target.partition is null
left join lateral {schema}.cursor_of(target.partition, target.grp) as named on true
