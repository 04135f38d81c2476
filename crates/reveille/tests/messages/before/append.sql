-- Append a flush: $1 partitions ascending, $2 how many messages each gets; segments by partition $3, first item $4, last
-- item $5, how many of the partition's items end with it $6, bytes $7; items by id $8, transaction id $9 (null where it is
-- the id), payload $10, trace id $11, producer $12, dedup key $13 (null for none, and for keys that grow); $14 how many of
-- these are given; $15 the key the payloads are sealed with; $16 whether to look into the outbox, for the queues named $17;
-- runs of keys that grow as the function remember takes them: $18 partition, $19 least, $20 greatest, $21 first and $22 last
-- of the keys $23 and their ids $24.
-- Returns nothing, and does nothing, when a partition or its queue is gone, when a queue wants its payloads sealed and they
-- are not (or the other way round), when pushes are paused, or when the outbox holds what was committed before this began.
-- Fails with RV001 when a key was seen before: then ask which ones.
-- locks:  the heads, ascending; the dedup rows of the keys
-- plan:   index scan backward using head_place
-- Heads are looked up from their newest version back, and written where they lie: while a transaction elsewhere is held open,
-- all versions are there. One of which somebody made a newer version while we waited for its lock is not seen by its place, and
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
), seen as (
  select pushed.partition, head.tid, pushed.n, queue.dedup_window
  from unnest($1::int[], $2::int[]) as pushed (partition, n)
  cross join lateral {schema}.head_of(pushed.partition) as head
  join {schema}.queue on queue.id = head.queue
  where queue.encrypted = ($15::int is not null)
    and not (select early.found from early)
  order by pushed.partition
), locked as materialized (
  select held.partition, held.tid, held.tid <> seen.tid as overtaken, seen.n, seen.dedup_window
  from seen
  cross join lateral (
    select head.partition, head.ctid as tid
    from {schema}.head
    where head.partition <= seen.partition
      and (head.partition, head.queue) >= (seen.partition, 0)
    order by head.partition desc
    limit 1
    for update
  ) as held
  where held.partition = seen.partition
), whole as materialized (
  select count(*) = cardinality($1::int[]) as here from locked
), kept as (
  insert into {schema}.dedup as seen (partition, key, id, until)
  select segment.partition, item.key, item.id, clock_timestamp() + locked.dedup_window
  from whole
  join unnest($3::int[], $4::int[], $5::int[]) as segment (partition, lo, hi) on whole.here
  join locked on locked.partition = segment.partition
  cross join lateral unnest(($13::uuid[])[segment.lo:segment.hi], ($8::uuid[])[segment.lo:segment.hi]) as item (key, id)
  where $14::bigint > 0 and item.key is not null
  on conflict (partition, key) do update
    set id = excluded.id, until = excluded.until
    where seen.until <= clock_timestamp()
  returning 1
), grown as materialized (
  select {schema}.remember($18::int[], $19::uuid[], $20::uuid[], $21::int[], $22::int[], $23::uuid[], $24::uuid[], array(
           select clock_timestamp() + locked.dedup_window
           from unnest($18::int[]) with ordinality as run (partition, o)
           join locked on locked.partition = run.partition
           order by run.o
         )) as are_new
  from whole
  where whole.here and cardinality($18::int[]) > 0
), checked as materialized (
  select case
           when not whole.here then false
           when (select count(*) from kept) = $14 and coalesce((select grown.are_new from grown), true) then true
           else {schema}.refuse_duplicates()
         end as go
  from whole
), in_place as (
  update {schema}.head
  set next_seq = head.next_seq + locked.n,
      fresh_at = coalesce(head.fresh_at, clock_timestamp()),
      last_at = greatest(head.last_at, clock_timestamp())
  from locked, checked
  where checked.go
    and not locked.overtaken
    and head.ctid = locked.tid
  returning head.partition, head.next_seq - locked.n - 1 as before, head.last_at
), by_key as (
  update {schema}.head
  set next_seq = head.next_seq + locked.n,
      fresh_at = coalesce(head.fresh_at, clock_timestamp()),
      last_at = greatest(head.last_at, clock_timestamp())
  from locked, checked
  where checked.go
    and locked.overtaken
    and head.partition = any (array(select locked.partition from locked where locked.overtaken))
    and head.partition = locked.partition
  returning head.partition, head.next_seq - locked.n - 1 as before, head.last_at
), moved as (
  select * from in_place
  union all
  select * from by_key
)
insert into {schema}.segment
  (partition, last_seq, n, bytes, at, key_id, ids, transaction_ids, payloads, trace_ids, producers)
select moved.partition, moved.before + segment.through, segment.hi - segment.lo + 1, segment.bytes, moved.last_at, $15::int,
       ($8::uuid[])[segment.lo:segment.hi], ($9::text[])[segment.lo:segment.hi], ($10::bytea[])[segment.lo:segment.hi],
       ($11::uuid[])[segment.lo:segment.hi], ($12::text[])[segment.lo:segment.hi]
from moved
join unnest($3::int[], $4::int[], $5::int[], $6::int[], $7::int[]) as segment (partition, lo, hi, through, bytes)
  on segment.partition = moved.partition
returning partition, last_seq, n
