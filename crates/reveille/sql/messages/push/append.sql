-- Append a flush to the logs of its partitions.
--
-- Stores everything or nothing, and returns:
--   where each segment lies     everything is stored
--   one row, for partition 0    nothing is stored, because a key was seen before: the caller then
--                               asks which. A repeated push is no error, and must not be one in the
--                               server's log
--   no row                      nothing is stored, because the statement declines: a partition or
--                               its queue is gone; or a queue wants sealed payloads and these are
--                               plain, or the other way round; or pushes are paused; or the outbox
--                               holds what was committed before this began
--
-- The outbox, which holds what was pushed in callers' transactions:
--   $1  whether to decline if pushes are paused or the outbox has messages of $2
--   $2  queues
-- Partitions, ascending:
--   $3  partition
--   $4  how many messages it gets
--   $5  $6  the least and the greatest of its growing keys; null where it has none
--   $7  $8  where its growing keys begin and end in $22 and $23
-- $9  the key that the payloads are sealed with; null for plain ones
-- Segments, partition by partition:
--   $10 partition
--   $11 $12  where its items begin and end in $15 to $20
--   $13 how many of the partition's messages lie up to its end
--   $14 bytes
-- Items, that is messages:
--   $15 id
--   $16 transaction id; null where it is the id
--   $17 payload
--   $18 trace id
--   $19 producer
--   $20 random key, that is a dedup key that does not grow; null for none
--   $21 how many of these are given
-- Growing keys, partition by partition:
--   $22 key
--   $23 id of its message
--
-- Keys. A key keeps a message from being stored twice. One that grows (a UUID of version 7) and is
-- greater than every key before it is new, and the log itself remembers it: `key_high` is the
-- greatest, and a span says which keys lie in which stretch of the log. A span is closed after 16
-- of its messages, or after 16 without a key. All other keys are looked up, and kept in rows of
-- their own. Worth it: a message pushed alone takes 16 us here instead of 25, and 665 bytes of log
-- instead of 830 (decision 0021).
--
-- Partition rows are looked up from their newest version back and written where they lie, because
-- while a transaction elsewhere is held open all versions are there. A row that another statement
-- wrote while this waited for its lock does not lie where this saw it, and is written by its key.
-- Worth it: after a minute with such a transaction 0.73 of the throughput is left, instead of 0.17
-- (decision 0018).
--
-- Steps:
--   outbox_check      whether pushes are paused or the outbox has messages
--   locked            locks the partition rows, and compares the growing keys with theirs
--   flush             whether every partition is locked
--   random_keys       the keys to look up: the random ones,
--   old_keys          and those that grow and are not greater than all before them
--   key_check         whether all keys are new; stores the old ones if they are
--   new_random_keys   stores the random keys
--   decision          whether to store the flush; fails if another transaction stored a random key
--                     meanwhile
--   closed_spans      writes the spans that are full
--   new_row           what each partition row becomes
--   written_in_place  writes the partition rows where they lie,
--   written_by_key    and those that do not lie there by their keys
--   stored            writes the segments
-- locks:  the partition rows, ascending; the dedup rows of the keys
-- plan:   index scan backward using partition_row_partition
with outbox_check as materialized (
  -- Names are compared as a range: where one queue has most rows of the outbox, PostgreSQL would
  -- read all of them to find that another has none.
  select $1::boolean and (
    exists (select from {schema}.switch where switch.name = 'push_paused' and switch.engaged)
    or exists (
      select
      from unnest($2::text[]) as named (queue)
      cross join lateral (
        select outbox.queue
        from {schema}.outbox
        where outbox.queue >= named.queue
        order by outbox.queue, outbox.id
        limit 1
      ) as next
      where next.queue = named.queue
    )
  ) as declines
), locked as materialized (
  select held.tid, held.partition, held.next_seq, held.new_since, held.last_at, held.key_high,
         held.span_from, held.span_to, held.span_low, held.span_high, held.span_is_full,
         held.span_from is null or held.span_is_full as opens_span,
         pushed.messages, pushed.key_high as pushed_high, pushed.keys_from, pushed.keys_to, queue.dedup_window,
         -- Some of its growing keys are not greater than all before them.
         coalesce(pushed.key_low <= held.key_high, false) as has_old_keys,
         -- The least of those that are.
         case when pushed.key_low <= held.key_high
           then (
             select item.key
             from unnest(($22::uuid[])[pushed.keys_from:pushed.keys_to]) as item (key)
             where item.key > held.key_high
             order by item.key
             limit 1
           )
           else pushed.key_low
         end as least_new
  from (
    select *
    from unnest($3::int[], $4::int[], $5::uuid[], $6::uuid[], $7::int[], $8::int[])
      as pushed (partition, messages, key_low, key_high, keys_from, keys_to)
    order by pushed.partition
  ) as pushed
  cross join lateral (
    select partition_row.ctid as tid, partition_row.*,
           greatest(
             partition_row.span_to - partition_row.span_from + 1,
             partition_row.next_seq - 1 - partition_row.span_to
           ) >= 16 as span_is_full
    from {schema}.partition_row
    where partition_row.partition <= pushed.partition
      and (partition_row.partition, partition_row.queue) >= (pushed.partition, 0)
    order by partition_row.partition desc
    limit 1
    for update
  ) as held
  join {schema}.queue on queue.id = held.queue
  where held.partition = pushed.partition
    and queue.encrypted = ($9::int is not null)
    and not (select outbox_check.declines from outbox_check)
), flush as materialized (
  select count(*) = cardinality($3::int[]) as is_locked, bool_or(locked.has_old_keys) as has_old_keys from locked
), random_keys as materialized (
  select array_agg(segment.partition) as partitions, array_agg(item.key) as keys
  from flush
  join unnest($10::int[], $11::int[], $12::int[]) as segment (partition, first, last) on flush.is_locked
  cross join lateral unnest(($20::uuid[])[segment.first:segment.last]) as item (key)
  where $21::bigint > 0 and item.key is not null
), old_keys as materialized (
  select array_agg(locked.partition) as partitions, array_agg(item.key) as keys, array_agg(item.id) as ids,
         array_agg(clock_timestamp() + locked.dedup_window) as untils
  from locked
  cross join lateral unnest(
    ($22::uuid[])[locked.keys_from:locked.keys_to], ($23::uuid[])[locked.keys_from:locked.keys_to]
  ) as item (key, id)
  where locked.has_old_keys and item.key <= locked.key_high
), key_check as materialized (
  -- Both functions see what was committed before the rows were locked, which this statement may
  -- have begun too early to see.
  select flush.is_locked,
         case
           when not flush.is_locked then false
           when $21 > 0 and (
             select {schema}.any_key_seen(random_keys.partitions, random_keys.keys) from random_keys
           ) then false
           when not flush.has_old_keys then true
           else (
             select {schema}.note_if_new(old_keys.partitions, old_keys.keys, old_keys.ids, old_keys.untils)
             from old_keys
           )
         end as all_new
  from flush
), new_random_keys as (
  insert into {schema}.dedup as seen (partition, key, id, until)
  select segment.partition, item.key, item.id, clock_timestamp() + locked.dedup_window
  from key_check
  join unnest($10::int[], $11::int[], $12::int[]) as segment (partition, first, last) on key_check.all_new
  join locked on locked.partition = segment.partition
  cross join lateral unnest(
    ($20::uuid[])[segment.first:segment.last], ($15::uuid[])[segment.first:segment.last]
  ) as item (key, id)
  where $21::bigint > 0 and item.key is not null
  on conflict (partition, key) do update
    set id = excluded.id, until = excluded.until
    where seen.until <= clock_timestamp()
  returning 1
), decision as materialized (
  select case
           when not key_check.all_new then false
           -- A transaction that does not hold the partition row stored a key: this is undone.
           when (select count(*) from new_random_keys) <> $21 then {schema}.refuse_duplicates()
           else true
         end as stores
  from key_check
), closed_spans as (
  insert into {schema}.dedup_span (partition, low, high, first_seq, last_seq, until)
  select locked.partition, locked.span_low, locked.span_high, locked.span_from, locked.span_to,
         locked.last_at + locked.dedup_window
  from locked
  cross join decision
  where decision.stores and locked.span_is_full
), new_row as materialized (
  -- What each partition row becomes, and its span:
  --   opens_span  has_new.keys
  --   no          no            it stays as it is
  --   no          yes           it goes on to the last message
  --   yes         yes           another begins at the first message
  --   yes         no            it has none until new keys come
  select locked.tid, locked.partition, locked.next_seq - 1 as before,
         locked.next_seq + locked.messages as next_seq,
         coalesce(locked.new_since, clock_timestamp()) as new_since,
         greatest(locked.last_at, clock_timestamp()) as last_at,
         greatest(locked.key_high, locked.pushed_high) as key_high,
         case
           when not locked.opens_span then locked.span_from
           when has_new.keys then locked.next_seq
         end as span_from,
         case
           when has_new.keys then locked.next_seq + locked.messages - 1
           when not locked.opens_span then locked.span_to
         end as span_to,
         case when not locked.opens_span then locked.span_low else locked.least_new end as span_low,
         case
           when has_new.keys then locked.pushed_high
           when not locked.opens_span then locked.span_high
         end as span_high
  from locked
  cross join decision
  cross join lateral (select locked.least_new is not null as keys) as has_new
  where decision.stores
), written_in_place as (
  update {schema}.partition_row
  set (next_seq, new_since, last_at, key_high, span_from, span_to, span_low, span_high)
    = (new_row.next_seq, new_row.new_since, new_row.last_at, new_row.key_high,
       new_row.span_from, new_row.span_to, new_row.span_low, new_row.span_high)
  from new_row
  where partition_row.ctid = new_row.tid
  returning partition_row.partition, new_row.before, partition_row.last_at
), written_by_key as (
  update {schema}.partition_row
  set (next_seq, new_since, last_at, key_high, span_from, span_to, span_low, span_high)
    = (new_row.next_seq, new_row.new_since, new_row.last_at, new_row.key_high,
       new_row.span_from, new_row.span_to, new_row.span_low, new_row.span_high)
  from new_row
  where (select count(*) from written_in_place) < cardinality($3::int[])
    and partition_row.partition = any (
      array(select new_row.partition from new_row except select written_in_place.partition from written_in_place)
    )
    and partition_row.partition = new_row.partition
  returning partition_row.partition, new_row.before, partition_row.last_at
), stored as (
  insert into {schema}.segment
    (partition, last_seq, n, bytes, at, key_id, ids, transaction_ids, payloads, trace_ids, producers)
  select written.partition, written.before + segment.through, segment.last - segment.first + 1, segment.bytes,
         written.last_at, $9::int,
         ($15::uuid[])[segment.first:segment.last], ($16::text[])[segment.first:segment.last],
         ($17::bytea[])[segment.first:segment.last], ($18::uuid[])[segment.first:segment.last],
         ($19::text[])[segment.first:segment.last]
  from (select * from written_in_place union all select * from written_by_key) as written
  join unnest($10::int[], $11::int[], $12::int[], $13::int[], $14::int[])
    as segment (partition, first, last, through, bytes)
    on segment.partition = written.partition
  returning partition, last_seq, n
)
select stored.partition, stored.last_seq, stored.n
from stored
union all
select 0, 0, 0
from key_check
where key_check.is_locked and not key_check.all_new
