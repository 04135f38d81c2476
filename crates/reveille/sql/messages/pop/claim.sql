-- Claim partitions for consumers and read what they lease.
-- Slots, the consumer that has waited longest first: $1 group, $2 consumer, $3 messages the consumer wants in all, $4 its
-- nonce, $5 whether it acks by being served, $6 the partition it names (null for any). One slot is room for one partition.
-- $7 the most bytes each partition may bring, unless its first segment alone has more. $8 whether the claim waits for the disk.
-- $9 since when it must be due, of slots for any partition; what is due since before is left for a search from the start.
-- A row for each claimed partition and segment of it; also a row without segment for what was only passed (dead, too old), and
-- one for each group of which more is due than the consumers whose slots met it have room for. Every row says how many
-- messages the whole claim sent to the dead letters.
-- locks:  the claimed cursors, skipping locked ones; nothing else
-- plan:   index scan using cursor_due
-- fences: every claim has a new epoch and its consumer's nonce
with slot as materialized (
  select slot.*, row_number() over (partition by slot.grp, slot.named is null order by slot.o) as place
  from unnest($1::int[], $2::int[], $3::int[], $4::uuid[], $5::boolean[], $6::int[], $9::timestamptz[])
    with ordinality as slot (grp, consumer, batch, nonce, auto, named, since, o)
  where set_config('synchronous_commit', case when $8::boolean then 'on' else 'off' end, true) is not null
    and not exists (select from {schema}.switch where switch.name = 'pop_paused' and switch.engaged)
), asking as (
  select wanted.grp, wanted.places, wanted.since
  from (
    select slot.grp, count(*) as places, min(slot.since) as since from slot where slot.named is null group by slot.grp
  ) as wanted
  join {schema}.consumer_group on consumer_group.id = wanted.grp
  join {schema}.queue on queue.id = consumer_group.queue
  where not queue.paused
), found as materialized (
  select asking.grp, due.*, row_number() over (partition by asking.grp order by due.due_at) as place
  from asking
  cross join lateral (
    select cursor.ctid as tid, cursor.partition, cursor.committed, cursor.upto, cursor.due_at, cursor.lease_until,
           cursor.failures, cursor.deliveries
    from {schema}.cursor
    where cursor.grp = asking.grp and cursor.due_at >= asking.since and cursor.due_at <= statement_timestamp()
    order by cursor.due_at
    limit asking.places
    for update skip locked
  ) as due
), named as materialized (
  select slot.grp, seen.tid, cursor.partition, cursor.committed, cursor.upto, cursor.due_at, cursor.lease_until,
         cursor.failures, cursor.deliveries, slot.place
  from (select * from slot where slot.named is not null order by slot.named, slot.grp) as slot
  cross join lateral {schema}.cursor_of(slot.named, slot.grp) as seen
  cross join lateral {schema}.head_of(slot.named) as head
  cross join lateral (
    select *
    from {schema}.cursor
    where cursor.ctid = seen.tid
      -- What is due and has nothing is not left so: whoever waits for it would look for ever.
      and (head.next_seq - 1 > cursor.committed or cursor.due_at is not null)
      and (cursor.due_at is null or cursor.due_at <= statement_timestamp())
    for update skip locked
  ) as cursor
), candidate as materialized (
  select slot.consumer, slot.batch, slot.nonce, slot.auto, slot.o, slot.grp, found.tid, found.partition, found.committed,
         found.upto, found.due_at, found.lease_until, found.failures, found.deliveries
  from found
  join slot on slot.grp = found.grp and slot.place = found.place and slot.named is null
  union all
  select slot.consumer, slot.batch, slot.nonce, slot.auto, slot.o, slot.grp, named.tid, named.partition, named.committed,
         named.upto, named.due_at, named.lease_until, named.failures, named.deliveries
  from named
  join slot on slot.grp = named.grp and slot.place = named.place and slot.named = named.partition
), placed as materialized (
  select candidate.*, head.queue, head.next_seq - 1 as newest, head.last_at,
         queue.lease, queue.delay, queue.window_buffer, queue.paused, queue.dead_letters, queue.max_deliveries,
         greatest(
           candidate.committed,
           head.first_seq - 1,
           case when queue.ttl > '0' then (
             select segment.last_seq - segment.n
             from {schema}.segment
             where segment.partition = candidate.partition
               and segment.last_seq > candidate.committed
               and segment.at > statement_timestamp() - queue.ttl
             order by segment.last_seq
             limit 1
           ) end,
           case when queue.ttl > '0' and head.last_at <= statement_timestamp() - queue.ttl then head.next_seq - 1 end
         ) as passed
  from candidate
  cross join lateral {schema}.head_of(candidate.partition) as head
  join {schema}.queue on queue.id = head.queue
), visible as materialized (
  select placed.*,
         -- A message that was claimed too often without a word from its consumer does not get another chance to kill one.
         placed.deliveries >= placed.max_deliveries and placed.passed = placed.committed
           and placed.newest > placed.committed and coalesce(placed.lease_until <= statement_timestamp(), true)
           and not placed.paused as poison,
         case
           when placed.paused or placed.lease_until > statement_timestamp() then placed.passed
           when placed.window_buffer > '0'
             and placed.last_at + placed.window_buffer > statement_timestamp()
             -- A producer that never rests does not hide its partition for ever.
             and coalesce((
               select segment.at
               from {schema}.segment
               where segment.partition = placed.partition and segment.last_seq > placed.passed
               order by segment.last_seq
               limit 1
             ) + 10 * placed.window_buffer > statement_timestamp(), true)
             then placed.passed
           when placed.delay > '0' then coalesce((
             select segment.last_seq - segment.n
             from {schema}.segment
             where segment.partition = placed.partition
               and segment.last_seq > placed.passed
               and segment.at > statement_timestamp() - placed.delay
             order by segment.last_seq
             limit 1
           ), placed.newest)
           else placed.newest
         end as visible_to
  from placed
), wanted as (
  select visible.*,
         visible.passed + visible.poison::int as start,
         case
           -- What was claimed before and never answered for comes alone, so that one bad message is found among many.
           when visible.deliveries - visible.failures > 1 and not visible.poison and visible.passed = visible.committed
             then least(1, greatest(0, visible.visible_to - visible.passed))
           else greatest(0, visible.visible_to - visible.passed - visible.poison::int)
         end as there
  from visible
), shared as materialized (
  select wanted.*,
         least(wanted.there, wanted.batch - coalesce(
           sum(wanted.there) over (partition by wanted.consumer order by wanted.o rows between unbounded preceding and 1 preceding),
           0)::bigint) as share
  from wanted
), taken as materialized (
  select shared.*,
         case
           when shared.share <= 0 then 0
           when shared.share = 1 then 1
           else least(shared.share, (
             select max(weighed.last_seq)
             from (
               select segment.last_seq,
                      sum(segment.bytes) over (order by segment.last_seq) - segment.bytes as before,
                      row_number() over (order by segment.last_seq) as place
               from {schema}.segment
               where segment.partition = shared.partition
                 and segment.last_seq > shared.start
                 and segment.last_seq <= (
                   select ending.last_seq
                   from {schema}.segment as ending
                   where ending.partition = shared.partition and ending.last_seq >= shared.start + shared.share
                   order by ending.last_seq
                   limit 1
                 )
             ) as weighed
             where weighed.place = 1 or weighed.before < $7::bigint
           ) - shared.start)
         end as take,
         -- Its consumer has no room for it, and nothing else is to be written: it stays due as it is.
         shared.there > 0 and shared.share <= 0 and shared.start = shared.committed
           and coalesce(shared.due_at <= statement_timestamp(), false) as left_due
  from shared
), claimed as (
  update {schema}.cursor
  set committed = taken.start + case when taken.auto then taken.take else 0 end,
      upto = greatest(cursor.upto, taken.newest),
      failures = case when taken.start > taken.committed or (taken.auto and taken.take > 0) then 0 else cursor.failures end,
      deliveries = case
        when taken.auto and taken.take > 0 then 0
        when taken.start > taken.committed then least(taken.take, 1)::int
        when taken.take > 0 then cursor.deliveries + 1
        else cursor.deliveries
      end,
      due_at = case
        when taken.take > 0 and not taken.auto then statement_timestamp() + taken.lease
        when taken.lease_until > statement_timestamp() then taken.lease_until
        -- Never cleared while this cursor, on the row we hold, was told of more: see docs/messages.md, rule R3.
        when greatest(cursor.upto, taken.newest) <= taken.start + case when taken.auto then taken.take else 0 end then null
        when taken.visible_to > taken.start + case when taken.auto then taken.take else 0 end then
          case when taken.auto and taken.take > 0 then statement_timestamp() else coalesce(cursor.due_at, statement_timestamp()) end
        when taken.paused then coalesce(cursor.due_at, statement_timestamp())
        when taken.window_buffer > '0' and taken.last_at + taken.window_buffer > statement_timestamp()
          then taken.last_at + taken.window_buffer
        when taken.delay > '0' then coalesce((
          select segment.at + taken.delay
          from {schema}.segment
          where segment.partition = taken.partition
            and segment.last_seq > taken.start
            and segment.at > statement_timestamp() - taken.delay
          order by segment.last_seq
          limit 1
        ), statement_timestamp())
        else statement_timestamp()
      end,
      -- An ended lease is void once the cursor has moved past it.
      lease_until = case
        when taken.take > 0 and not taken.auto then statement_timestamp() + taken.lease
        when taken.take > 0 or taken.start > taken.committed then null
        else cursor.lease_until
      end,
      leased_through = case when taken.take > 0 then taken.start + taken.take else cursor.leased_through end,
      epoch = case when taken.take > 0 then cursor.epoch + 1 else cursor.epoch end,
      nonce = case when taken.take > 0 then taken.nonce else cursor.nonce end
  from taken
  where cursor.ctid = taken.tid and not taken.left_due
  returning taken.consumer, cursor.grp, cursor.partition, taken.queue, cursor.epoch, taken.take, taken.start,
            taken.start + taken.take as through, cursor.deliveries, cursor.failures,
            extract(epoch from cursor.lease_until - statement_timestamp())::float8 as lease_s,
            coalesce(cursor.due_at <= statement_timestamp(), false) as more
), poisoned as materialized (
  -- By itself, because nearly always there is none: the planner would go through all pairs of claims to find that out.
  select taken.* from taken where taken.poison and taken.dead_letters
), buried as (
  insert into {schema}.dead_letter
    (queue, partition, grp, seq, message_id, transaction_id, trace_id, producer, key_id, payload, pushed_at, failures,
     deliveries, error)
  select poisoned.queue, poisoned.partition, poisoned.grp, poisoned.passed + 1, held.ids[held.i],
         coalesce(held.transaction_ids[held.i], held.ids[held.i]::text), held.trace_ids[held.i], held.producers[held.i],
         held.key_id, held.payloads[held.i], held.at, poisoned.failures, poisoned.deliveries,
         'claimed ' || poisoned.deliveries || ' times without an answer'
  from claimed
  join poisoned on poisoned.partition = claimed.partition and poisoned.grp = claimed.grp
  cross join lateral (
    select segment.*, (poisoned.passed + 1 - segment.last_seq + segment.n)::int as i
    from {schema}.segment
    where segment.partition = poisoned.partition and segment.last_seq > poisoned.passed
    order by segment.last_seq
    limit 1
  ) as held
  where not coalesce(held.i = any (held.gone), false)
    and coalesce(held.only_grp = poisoned.grp, true)
  returning 1
), answer as (
  select * from claimed
  union all
  select *
  from (
    -- One says it for the group.
    select distinct on (taken.grp) taken.consumer, taken.grp, taken.partition, taken.queue, 0::bigint as epoch, taken.take,
           taken.start, taken.start as through, taken.deliveries, taken.failures, null::float8 as lease_s, true as more
    from taken
    where taken.left_due
    order by taken.grp
  ) as left_due
)
select claimed.consumer, claimed.grp, claimed.partition, claimed.queue, claimed.epoch, claimed.start, claimed.through,
       claimed.deliveries, claimed.failures, claimed.lease_s, claimed.more, claimed.take > 0 as leased,
       part.first, part.at, part.key_id, part.gone, part.ids, part.transaction_ids, part.payloads, part.trace_ids, part.producers,
       (select count(*) from buried) as buried
from answer as claimed
left join lateral (
  select segment.last_seq,
         greatest(claimed.start + 1, segment.last_seq - segment.n + 1) as first,
         segment.at, segment.key_id,
         case
           when segment.only_grp <> claimed.grp
             then array(select generate_series(segment.last_seq - segment.n + 1, segment.last_seq))
           when segment.gone is not null
             then array(select segment.last_seq - segment.n + position from unnest(segment.gone) as position)
         end as gone,
         segment.ids[cut.lo:cut.hi] as ids,
         segment.transaction_ids[cut.lo:cut.hi] as transaction_ids,
         segment.payloads[cut.lo:cut.hi] as payloads,
         segment.trace_ids[cut.lo:cut.hi] as trace_ids,
         segment.producers[cut.lo:cut.hi] as producers
  from {schema}.segment
  cross join lateral (
    select greatest(1, claimed.start - segment.last_seq + segment.n + 1)::int as lo,
           least(segment.n, claimed.through - segment.last_seq + segment.n)::int as hi
  ) as cut
  where segment.partition = case when claimed.take > 0 then claimed.partition end
    and segment.last_seq > claimed.start
    and segment.last_seq <= (
      select ending.last_seq
      from {schema}.segment as ending
      where ending.partition = claimed.partition and ending.last_seq >= claimed.through
      order by ending.last_seq
      limit 1
    )
) as part on true
order by claimed.consumer, claimed.partition, part.last_seq
