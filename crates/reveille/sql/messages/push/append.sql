-- Append a flush: $1 partitions ascending, $2 how many messages each gets; segments by partition $3, first item $4, last
-- item $5, how many of the partition's items end with it $6, bytes $7; items by id $8, transaction id $9 (null where it is
-- the id), payload $10, trace id $11, producer $12, dedup key $13 (null for none, and for keys that grow); $14 how many of
-- these are given; $15 the key the payloads are sealed with; $16 whether to look into the outbox, for the queues named $17;
-- of the keys that grow, for each partition of $1: the least $18, the greatest $19, first $20 and last $21 of the
-- keys $22 and their ids $23.
-- Returns nothing, and does nothing, when a partition or its queue is gone, when a queue wants its payloads sealed and they
-- are not (or the other way round), when pushes are paused, or when the outbox holds what was committed before this began.
-- When a key was seen before, it does nothing either, and returns one row whose partition is 0: then ask which ones. A repeated
-- push is no error, and must not be one in the server's log.
-- A key that grows and is greater than all before it is new, and remembered by the log. Others are looked for, and kept apart. After 16
-- messages, or as many that others brought, a stretch of the log is closed: a span says which keys it holds.
-- locks:  the heads, ascending; the dedup rows of the keys
-- plan:   index scan backward using head_place
-- Heads are looked up from their newest version back, and written where they lie: while a transaction elsewhere is held open,
-- all versions are there. One of which somebody made a newer version while we waited for its lock is not found where it lies, and
-- is written by its key.
-- Names in the outbox are compared as a range: where one queue has most of its rows, PostgreSQL would read all of them to
-- find that another has none.
with early as materialized (
  select $16::boolean and (
    exists (select from {schema}.switch where switch.name = 'push_paused' and switch.engaged)
    or exists (
      select
      from unnest($17::text[]) as named (queue)
      cross join lateral (
        select outbox.queue
        from {schema}.outbox
        where outbox.queue >= named.queue
        order by outbox.queue, outbox.id
        limit 1
      ) as next
      where next.queue = named.queue
    )
  ) as found
), locked as materialized (
  select pushed.*, queue.dedup_window, held.place, held.key_high,
         coalesce(pushed.low <= held.key_high, false) as meets,
         -- The least of those that come in order.
         case when pushed.low <= held.key_high
           then (
             select item.key
             from unnest(($22::uuid[])[pushed.first:pushed.last]) as item (key)
             where item.key > held.key_high
             order by item.key
             limit 1
           )
           else pushed.low
         end as rises,
         held.ends as closes,
         held.span_from is null or held.ends as opens,
         held.last_at, held.span_from, held.span_to, held.span_low, held.span_high
  from (
    select *
    from unnest($1::int[], $2::int[], $18::uuid[], $19::uuid[], $20::int[], $21::int[])
      as pushed (partition, n, low, high, first, last)
    order by pushed.partition
  ) as pushed
  cross join lateral (
    select head.ctid as place, head.*,
           greatest(head.span_to - head.span_from + 1, head.next_seq - 1 - head.span_to) >= 16 as ends
    from {schema}.head
    where head.partition <= pushed.partition
      and (head.partition, head.queue) >= (pushed.partition, 0)
    order by head.partition desc
    limit 1
    for update
  ) as held
  join {schema}.queue on queue.id = held.queue
  where held.partition = pushed.partition
    and queue.encrypted = ($15::int is not null)
    and not (select early.found from early)
), whole as materialized (
  select count(*) = cardinality($1::int[]) as here, bool_or(locked.meets) as meets from locked
), asked as materialized (
  select array_agg(segment.partition) as partitions, array_agg(item.key) as keys
  from whole
  join unnest($3::int[], $4::int[], $5::int[]) as segment (partition, lo, hi) on whole.here
  cross join lateral unnest(($13::uuid[])[segment.lo:segment.hi]) as item (key)
  where $14::bigint > 0 and item.key is not null
), met as materialized (
  select array_agg(locked.partition) as partitions, array_agg(item.key) as keys, array_agg(item.id) as ids,
         array_agg(clock_timestamp() + locked.dedup_window) as untils
  from locked
  cross join lateral unnest(($22::uuid[])[locked.first:locked.last], ($23::uuid[])[locked.first:locked.last]) as item (key, id)
  where locked.meets and item.key <= locked.key_high
), judged as materialized (
  -- Both see what was committed before the heads were taken, which this statement may have begun too early to see.
  select whole.here,
         case
           when not whole.here then false
           when $14 > 0 and (select {schema}.any_key_seen(asked.partitions, asked.keys) from asked) then false
           when not whole.meets then true
           else (select {schema}.note_if_new(met.partitions, met.keys, met.ids, met.untils) from met)
         end as go
  from whole
), kept as (
  insert into {schema}.dedup as seen (partition, key, id, until)
  select segment.partition, item.key, item.id, clock_timestamp() + locked.dedup_window
  from judged
  join unnest($3::int[], $4::int[], $5::int[]) as segment (partition, lo, hi) on judged.go
  join locked on locked.partition = segment.partition
  cross join lateral unnest(($13::uuid[])[segment.lo:segment.hi], ($8::uuid[])[segment.lo:segment.hi]) as item (key, id)
  where $14::bigint > 0 and item.key is not null
  on conflict (partition, key) do update
    set id = excluded.id, until = excluded.until
    where seen.until <= clock_timestamp()
  returning 1
), checked as materialized (
  select case
           when not judged.go then false
           -- A key was kept by somebody who does not hold the head: all of this is undone.
           when (select count(*) from kept) <> $14 then {schema}.refuse_duplicates()
           else true
         end as go
  from judged
), closed as (
  insert into {schema}.dedup_span (partition, low, high, first_seq, last_seq, until)
  select locked.partition, locked.span_low, locked.span_high, locked.span_from, locked.span_to,
         locked.last_at + locked.dedup_window
  from locked, checked
  where checked.go and locked.closes
), in_place as (
  update {schema}.head
  set next_seq = head.next_seq + locked.n,
      fresh_at = coalesce(head.fresh_at, clock_timestamp()),
      last_at = greatest(head.last_at, clock_timestamp()),
      key_high = greatest(locked.key_high, locked.high),
      span_from = case when not locked.opens then head.span_from when locked.rises is not null then head.next_seq end,
      span_to = case when locked.rises is not null then head.next_seq + locked.n - 1 when not locked.opens then head.span_to end,
      span_low = case when locked.opens then locked.rises else head.span_low end,
      span_high = case when locked.rises is not null then locked.high when not locked.opens then head.span_high end
  from locked, checked
  where checked.go
    and head.ctid = locked.place
  returning head.partition, head.next_seq - locked.n - 1 as before, head.last_at
), by_key as (
  update {schema}.head
  set next_seq = head.next_seq + locked.n,
      fresh_at = coalesce(head.fresh_at, clock_timestamp()),
      last_at = greatest(head.last_at, clock_timestamp()),
      key_high = greatest(locked.key_high, locked.high),
      span_from = case when not locked.opens then head.span_from when locked.rises is not null then head.next_seq end,
      span_to = case when locked.rises is not null then head.next_seq + locked.n - 1 when not locked.opens then head.span_to end,
      span_low = case when locked.opens then locked.rises else head.span_low end,
      span_high = case when locked.rises is not null then locked.high when not locked.opens then head.span_high end
  from locked, checked
  where checked.go
    and (select count(*) from in_place) < cardinality($1::int[])
    and head.partition = any (array(select locked.partition from locked except select in_place.partition from in_place))
    and head.partition = locked.partition
  returning head.partition, head.next_seq - locked.n - 1 as before, head.last_at
), moved as (
  select * from in_place
  union all
  select * from by_key
), stored as (
  insert into {schema}.segment
    (partition, last_seq, n, bytes, at, key_id, ids, transaction_ids, payloads, trace_ids, producers)
  select moved.partition, moved.before + segment.through, segment.hi - segment.lo + 1, segment.bytes, moved.last_at, $15::int,
         ($8::uuid[])[segment.lo:segment.hi], ($9::text[])[segment.lo:segment.hi], ($10::bytea[])[segment.lo:segment.hi],
         ($11::uuid[])[segment.lo:segment.hi], ($12::text[])[segment.lo:segment.hi]
  from moved
  join unnest($3::int[], $4::int[], $5::int[], $6::int[], $7::int[]) as segment (partition, lo, hi, through, bytes)
    on segment.partition = moved.partition
  returning partition, last_seq, n
)
select stored.partition, stored.last_seq, stored.n
from stored
union all
select 0, 0, 0
from judged
where judged.here and not judged.go
