-- Claim partitions for consumers, and read the messages that they lease.
--
-- A slot is room for one partition. Slots, the consumer that has waited longest first:
--   $1 consumer    its number, returned with what it gets
--   $2 group
--   $3 partition   the one it wants; null for any that is due
--   $4 due since   for any partition; those due before are left to a search from the start
--   $5 batch       how many messages the consumer wants, over all its slots
--   $6 nonce       fences the lease
--   $7 auto ack    the messages are acked by being claimed
-- For all slots:
--   $8 bytes       the most that one partition brings, unless its first segment alone has more
--   $9 durable     the commit waits for the disk
--
-- Returns a row for each leased partition and segment of it. A row without a segment is a partition
-- whose cursor only moved past messages that no consumer gets (dead, expired), or a group that has
-- more due than its consumers have room for. Every row has the number of messages that the whole
-- statement sent to the dead letters.
--
-- Positions of a cursor in its partition, each the sequence of a message, in this order:
--   committed   where it stands
--   passed      past what retention removed and what expired
--   start       past the poisoned message too, if there is one: the claim takes what follows
--   through     the last message that is claimed, `take` messages after start
--   visible_to  the last message that may be claimed now; a poisoned one may lie beyond
--   newest      the last message there is
-- `settled_to` is where the cursor stands afterwards: at start, or at through if the messages are
-- acked by being claimed. `upto` is how far it has been marked ready.
--
-- Steps:
--   slot       the slots, numbered for each group
--   due        locks the cursors for slots of any partition,
--   named      and those for slots of one partition
--   placed     moves past what retention removed and what expired
--   visible    up to where messages may go; whether the next one is poison
--   available  how many messages that is
--   shared     divides the batch of a consumer between its slots
--   taken      how many of them the bytes allow
--   decided    what is claimed, and where the cursor stands afterwards
--   claimed    writes the cursors
--   poisoned   messages that were claimed too often without an answer,
--   buried     which are written to the dead letters
--   answer     what was claimed, and the groups that have more due
-- locks:  the claimed cursors, skipping locked ones; nothing else
-- plan:   index scan using cursor_due
-- fences: every claim has a new epoch and its consumer's nonce
with slot as materialized (
  select slot.*, row_number() over (partition by slot.grp, slot.named is null order by slot.ordinal) as place
  from unnest($1::int[], $2::int[], $3::int[], $4::timestamptz[], $5::int[], $6::uuid[], $7::boolean[]) with ordinality
    as slot (consumer, grp, named, since, batch, nonce, auto, ordinal)
  where set_config('synchronous_commit', case when $9::boolean then 'on' else 'off' end, true) is not null
    and not exists (select from {schema}.switch where switch.name = 'pop_paused' and switch.engaged)
), due as materialized (
  -- The n-th due partition of a group goes to its n-th slot.
  select slot.consumer, slot.batch, slot.nonce as new_nonce, slot.auto, slot.ordinal, ranked.*
  from (
    select held.*, row_number() over (partition by held.grp order by held.due_at) as place
    from (
      select slot.grp, count(*) as slots, min(slot.since) as since from slot where slot.named is null group by slot.grp
    ) as wanting
    join {schema}.consumer_group on consumer_group.id = wanting.grp
    join {schema}.queue on queue.id = consumer_group.queue
    cross join lateral (
      select cursor.ctid as tid, cursor.*
      from {schema}.cursor
      where cursor.grp = wanting.grp and cursor.due_at >= wanting.since and cursor.due_at <= statement_timestamp()
      order by cursor.due_at
      limit wanting.slots
      for update skip locked
    ) as held
    where not queue.paused
  ) as ranked
  join slot on slot.grp = ranked.grp and slot.place = ranked.place and slot.named is null
), named as materialized (
  select slot.consumer, slot.batch, slot.nonce as new_nonce, slot.auto, slot.ordinal, seen.tid, held.*, slot.place
  from (select * from slot where slot.named is not null order by slot.named, slot.grp) as slot
  cross join lateral {schema}.cursor_of(slot.named, slot.grp) as seen
  cross join lateral {schema}.partition_row_of(slot.named) as partition_row
  cross join lateral (
    select cursor.*
    from {schema}.cursor
    where cursor.ctid = seen.tid
      -- A cursor that is due without a message is claimed too, so that its due time is cleared:
      -- otherwise consumers would be woken for it again and again.
      and (partition_row.next_seq - 1 > cursor.committed or cursor.due_at is not null)
      and (cursor.due_at is null or cursor.due_at <= statement_timestamp())
    for update skip locked
  ) as held
), placed as materialized (
  select candidate.*, partition_row.queue, partition_row.next_seq - 1 as newest, partition_row.last_at,
         queue.lease, queue.delay, queue.window_buffer, queue.paused, queue.dead_letters, queue.max_deliveries,
         greatest(
           candidate.committed,
           partition_row.first_seq - 1,
           case when queue.ttl > '0' then (
             select segment.last_seq - segment.n
             from {schema}.segment
             where segment.partition = candidate.partition
               and segment.last_seq > candidate.committed
               and segment.at > statement_timestamp() - queue.ttl
             order by segment.last_seq
             limit 1
           ) end,
           case
             when queue.ttl > '0' and partition_row.last_at <= statement_timestamp() - queue.ttl
               then partition_row.next_seq - 1
           end
         ) as passed
  from (select * from due union all select * from named) as candidate
  cross join lateral {schema}.partition_row_of(candidate.partition) as partition_row
  join {schema}.queue on queue.id = partition_row.queue
), visible as materialized (
  select placed.*,
         -- A message that was claimed too often without an answer is not delivered again: it may
         -- kill its consumers.
         placed.deliveries >= placed.max_deliveries and placed.passed = placed.committed
           and placed.newest > placed.committed and coalesce(placed.lease_until <= statement_timestamp(), true)
           and not placed.paused as poison,
         -- Up to which message a claim may go: none during a pause, a lease or a window; with a
         -- delay up to the first segment that is too young; else all.
         case
           when placed.paused or placed.lease_until > statement_timestamp() then placed.passed
           when placed.window_buffer > '0'
             and placed.last_at + placed.window_buffer > statement_timestamp()
             -- A producer that pushes without a pause does not hide its partition for ever.
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
), available as (
  select visible.*,
         -- A poisoned message is the one after `passed`.
         visible.passed + visible.poison::int as start,
         case
           -- A message that was claimed before without an answer is delivered alone, so that one
           -- bad message is found among many.
           when visible.deliveries - visible.failures > 1 and not visible.poison and visible.passed = visible.committed
             then least(1, greatest(0, visible.visible_to - visible.passed))
           else greatest(0, visible.visible_to - visible.passed - visible.poison::int)
         end as messages
  from visible
), shared as materialized (
  -- A consumer's batch is filled slot by slot.
  select available.*,
         least(available.messages, available.batch - coalesce(sum(available.messages) over (
           partition by available.consumer order by available.ordinal rows between unbounded preceding and 1 preceding
         ), 0)::bigint) as share
  from available
), taken as materialized (
  select shared.*,
         ending.through - shared.start as take,
         -- The consumer has no room for it, and the cursor need not move: it stays due as it is.
         shared.messages > 0 and shared.share <= 0 and shared.start = shared.committed
           and coalesce(shared.due_at <= statement_timestamp(), false) as left_due
  from shared
  cross join lateral {schema}.lease_end(shared.partition, shared.start, shared.share, $8::bigint) as ending
), decided as materialized (
  select taken.*,
         taken.take > 0 and not taken.auto as leases,
         taken.start + case when taken.auto then taken.take else 0 end as settled_to
  from taken
  where not taken.left_due
), claimed as (
  update {schema}.cursor
  set committed = decided.settled_to,
      upto = greatest(cursor.upto, decided.newest),
      failures = case when decided.settled_to > decided.committed then 0 else cursor.failures end,
      deliveries = case when decided.settled_to > decided.committed then 0 else cursor.deliveries end + decided.leases::int,
      -- When the partition is due next; the first that holds:
      --   it is leased by this claim         when that lease ends
      --   it is still leased                 when that lease ends
      --   no message is left                 never
      --   more may go, and some went         now: it goes to the end of the line
      --   more may go, and none went         as before: it keeps its place in the line
      --   there is a pause                   as before
      --   the window is open                 when it closes
      --   messages are delayed               when the first of them is old enough
      --   otherwise                          now
      due_at = case
        when decided.leases then statement_timestamp() + decided.lease
        when decided.lease_until > statement_timestamp() then decided.lease_until
        -- Never cleared while this cursor, on the row we hold, was marked ready for more: rule R3
        -- of docs/messages.md.
        when greatest(cursor.upto, decided.newest) <= decided.settled_to then null
        when decided.visible_to > decided.settled_to and decided.take > 0 then statement_timestamp()
        when decided.visible_to > decided.settled_to or decided.paused then coalesce(cursor.due_at, statement_timestamp())
        when decided.window_buffer > '0' and decided.last_at + decided.window_buffer > statement_timestamp()
          then decided.last_at + decided.window_buffer
        when decided.delay > '0' then coalesce((
          select segment.at + decided.delay
          from {schema}.segment
          where segment.partition = decided.partition
            and segment.last_seq > decided.start
            and segment.at > statement_timestamp() - decided.delay
          order by segment.last_seq
          limit 1
        ), statement_timestamp())
        else statement_timestamp()
      end,
      lease_until = case
        when decided.leases then statement_timestamp() + decided.lease
        -- An ended lease is void once the cursor has moved past it.
        when decided.settled_to > decided.committed then null
        else cursor.lease_until
      end,
      leased_through = case when decided.take > 0 then decided.start + decided.take else cursor.leased_through end,
      epoch = cursor.epoch + (decided.take > 0)::int,
      nonce = case when decided.take > 0 then decided.new_nonce else cursor.nonce end
  from decided
  where cursor.ctid = decided.tid
  returning decided.consumer, cursor.grp, cursor.partition, decided.start, decided.start + decided.take as through,
            cursor.deliveries, extract(epoch from cursor.lease_until - statement_timestamp())::float8 as lease_s,
            coalesce(cursor.due_at <= statement_timestamp(), false) as more, decided.take > 0 as leased
), poisoned as materialized (
  -- A step of its own, because nearly always there is none: otherwise the plan joins all pairs of
  -- claims to find that out.
  select decided.* from decided where decided.poison and decided.dead_letters
), buried as (
  -- The row that the function bury writes for one message: change both.
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
  (
    -- One row reports for the group that more is due.
    select distinct on (taken.grp) taken.consumer, taken.grp, taken.partition, taken.start, taken.start, taken.deliveries,
           null::float8, true, false
    from taken
    where taken.left_due
    order by taken.grp
  )
)
select answer.*, part.*, (select count(*) from buried) as buried
from answer
left join lateral {schema}.segment_parts(
  case when answer.leased then answer.partition end, answer.start, answer.through, answer.grp
) as part on true
order by answer.consumer, answer.partition, part.first
