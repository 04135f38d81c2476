-- Claim partitions of plain queues for consumers that want one partition each, and read the
-- messages that they lease: the common case of messages/pop/claim.sql, cheaper for small batches.
-- Plain is a queue that neither delays, expires nor pauses messages. Messages that were claimed
-- before and not settled are left to the general statement, as is every other queue.
--
-- Slots, the consumer that has waited longest first:
--   $1 consumer    its number, returned with what it gets
--   $2 group
--   $3 partition   the one it wants; null for any that is due
--   $4 due since   for any partition; those due before are left to a search from the start
--   $5 batch       how many messages the consumer wants
--   $6 nonce       fences the lease
-- For all slots:
--   $7 bytes       the most that one partition brings, unless its first segment alone has more
--
-- Returns a row for each segment, with the columns of messages/pop/claim.sql, without `buried`. The
-- commit does not wait for the disk.
-- locks:  the claimed cursors, skipping locked ones; nothing else
-- plan:   index scan using cursor_due
-- fences: every claim has a new epoch and its consumer's nonce
with slot as materialized (
  select slot.*, row_number() over (partition by slot.grp order by slot.ordinal) as place
  from unnest($1::int[], $2::int[], $3::int[], $4::timestamptz[], $5::int[], $6::uuid[]) with ordinality
    as slot (consumer, grp, named, since, batch, nonce, ordinal)
  where set_config('synchronous_commit', 'off', true) is not null
    and not exists (select from {schema}.switch where switch.name = 'pop_paused' and switch.engaged)
), due as materialized (
  -- The n-th due partition of a group goes to its n-th slot.
  select slot.consumer, slot.batch, slot.nonce, ranked.tid, ranked.grp, ranked.partition, ranked.committed
  from (
    select wanting.grp, held.tid, held.partition, held.committed,
           row_number() over (partition by wanting.grp order by held.due_at) as place
    from (
      select slot.grp, count(*) as slots, min(slot.since) as since from slot where slot.named is null group by slot.grp
    ) as wanting
    cross join lateral (
      select cursor.ctid as tid, cursor.partition, cursor.committed, cursor.due_at
      from {schema}.cursor
      where cursor.grp = wanting.grp
        and cursor.due_at >= wanting.since
        and cursor.due_at <= statement_timestamp()
        and cursor.deliveries = 0
      order by cursor.due_at
      limit wanting.slots
      for update skip locked
    ) as held
  ) as ranked
  join slot on slot.grp = ranked.grp and slot.place = ranked.place
), named as materialized (
  select slot.consumer, slot.batch, slot.nonce, seen.tid, slot.grp, held.partition, held.committed
  from (select * from slot where slot.named is not null order by slot.named, slot.grp) as slot
  cross join lateral {schema}.cursor_of(slot.named, slot.grp) as seen
  cross join lateral (
    select cursor.partition, cursor.committed
    from {schema}.cursor
    where cursor.ctid = seen.tid
      and cursor.deliveries = 0
      and (cursor.due_at is null or cursor.due_at <= statement_timestamp())
    for update skip locked
  ) as held
), leasable as materialized (
  select candidate.*, queue.lease, partition_row.next_seq - 1 as newest, ending.through
  from (select * from due union all select * from named) as candidate
  cross join lateral {schema}.partition_row_of(candidate.partition) as partition_row
  join {schema}.queue on queue.id = partition_row.queue
  cross join lateral {schema}.lease_end(
    candidate.partition, candidate.committed, least(candidate.batch, partition_row.next_seq - 1 - candidate.committed), $7::bigint
  ) as ending
  where partition_row.next_seq - 1 > candidate.committed
    and partition_row.first_seq - 1 <= candidate.committed
    and queue.delay = '0'
    and queue.window_buffer = '0'
    and queue.ttl = '0'
    and not queue.paused
), claimed as (
  update {schema}.cursor
  set upto = greatest(cursor.upto, leasable.newest),
      deliveries = 1,
      due_at = statement_timestamp() + leasable.lease,
      lease_until = statement_timestamp() + leasable.lease,
      leased_through = leasable.through,
      epoch = cursor.epoch + 1,
      nonce = leasable.nonce
  from leasable
  where cursor.ctid = leasable.tid
  returning leasable.consumer, cursor.grp, cursor.partition, cursor.committed as start, cursor.leased_through as through,
            cursor.deliveries, extract(epoch from leasable.lease)::float8 as lease_s
)
select claimed.*, false as more, true as leased, part.*
from claimed
cross join lateral {schema}.segment_parts(claimed.partition, claimed.start, claimed.through, claimed.grp) as part
order by claimed.consumer, claimed.partition, part.first
