-- Claim partitions of plain queues, of which nothing needs care, for consumers that want one partition each: the common
-- case of messages/pop/claim.sql, cheaper for small batches. Plain is a queue that neither delays nor drops nor pauses; care is
-- needed for what was claimed before and not settled. Whatever is not both is left alone: the general statement serves it.
-- Slots, the consumer that has waited longest first: $1 group, $2 consumer, $3 messages it wants, $4 its nonce, $5 the
-- partition it names (null for any). $6 the most bytes one partition may bring, unless its first segment alone has more.
-- $7 since when it must be due, as in messages/pop/claim.sql. Columns as there. The commit does not wait for the disk.
-- locks:  the claimed cursors, skipping locked ones; nothing else
-- plan:   index scan using cursor_due
-- fences: every claim has a new epoch and its consumer's nonce
with slot as materialized (
  select slot.*, row_number() over (partition by slot.grp order by slot.o) as place
  from unnest($1::int[], $2::int[], $3::int[], $4::uuid[], $5::int[], $7::timestamptz[]) with ordinality
    as slot (grp, consumer, batch, nonce, named, since, o)
  where set_config('synchronous_commit', 'off', true) is not null
    and not exists (select from {schema}.switch where switch.name = 'pop_paused' and switch.engaged)
), found as materialized (
  select slot.consumer, slot.batch, slot.nonce, due.tid, due.grp, due.partition, due.committed
  from (
    select asking.grp, next.tid, next.partition, next.committed,
           row_number() over (partition by asking.grp order by next.due_at) as place
    from (
      select slot.grp, count(*) as places, min(slot.since) as since from slot where slot.named is null group by slot.grp
    ) as asking
    cross join lateral (
      select cursor.ctid as tid, cursor.partition, cursor.committed, cursor.due_at
      from {schema}.cursor
      where cursor.grp = asking.grp
        and cursor.due_at >= asking.since
        and cursor.due_at <= statement_timestamp()
        and cursor.deliveries = 0
      order by cursor.due_at
      limit asking.places
      for update skip locked
    ) as next
  ) as due
  join slot on slot.grp = due.grp and slot.place = due.place
), named as materialized (
  select slot.consumer, slot.batch, slot.nonce, seen.tid, slot.grp, cursor.partition, cursor.committed
  from (select * from slot where slot.named is not null order by slot.named, slot.grp) as slot
  cross join lateral {schema}.cursor_of(slot.named, slot.grp) as seen
  cross join lateral (
    select cursor.partition, cursor.committed
    from {schema}.cursor
    where cursor.ctid = seen.tid
      and cursor.deliveries = 0
      and (cursor.due_at is null or cursor.due_at <= statement_timestamp())
    for update skip locked
  ) as cursor
), there as materialized (
  select candidate.*, head.queue, queue.lease, head.next_seq - 1 as newest,
         least(candidate.batch, head.next_seq - 1 - candidate.committed) as share
  from (select * from found union all select * from named) as candidate
  cross join lateral {schema}.head_of(candidate.partition) as head
  join {schema}.queue on queue.id = head.queue
  where head.next_seq - 1 > candidate.committed
    and head.first_seq - 1 <= candidate.committed
    and queue.delay = '0'
    and queue.window_buffer = '0'
    and queue.ttl = '0'
    and not queue.paused
), claimed as (
  update {schema}.cursor
  set upto = greatest(cursor.upto, there.newest),
      deliveries = 1,
      due_at = statement_timestamp() + there.lease,
      lease_until = statement_timestamp() + there.lease,
      leased_through = case
        when there.share = 1 then cursor.committed + 1
        else least(cursor.committed + there.share, (
          select max(weighed.last_seq)
          from (
            select segment.last_seq,
                   sum(segment.bytes) over (order by segment.last_seq) - segment.bytes as before,
                   row_number() over (order by segment.last_seq) as place
            from {schema}.segment
            where segment.partition = there.partition
              and segment.last_seq > there.committed
              and segment.last_seq <= (
                select ending.last_seq
                from {schema}.segment as ending
                where ending.partition = there.partition and ending.last_seq >= there.committed + there.share
                order by ending.last_seq
                limit 1
              )
          ) as weighed
          where weighed.place = 1 or weighed.before < $6::bigint
        ))
      end,
      epoch = cursor.epoch + 1,
      nonce = there.nonce
  from there
  where cursor.ctid = there.tid
  returning there.consumer, cursor.grp, cursor.partition, there.queue, cursor.epoch, cursor.committed as start,
            cursor.leased_through as through, cursor.deliveries, cursor.failures, extract(epoch from there.lease)::float8 as lease_s
)
select claimed.consumer, claimed.grp, claimed.partition, claimed.queue, claimed.epoch, claimed.start, claimed.through,
       claimed.deliveries, claimed.failures, claimed.lease_s, false as more, true as leased,
       part.first, part.at, part.key_id, part.gone, part.ids, part.transaction_ids, part.payloads, part.trace_ids, part.producers
from claimed
cross join lateral (
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
  where segment.partition = claimed.partition
    and segment.last_seq > claimed.start
    and segment.last_seq <= (
      select ending.last_seq
      from {schema}.segment as ending
      where ending.partition = claimed.partition and ending.last_seq >= claimed.through
      order by ending.last_seq
      limit 1
    )
) as part
order by claimed.consumer, claimed.partition, part.last_seq
