-- Ack whole leases and lease on in the same partitions: $1 partition, $2 group, $3 nonce, $4 the last sequence of the lease,
-- $5 consumer, $6 messages the consumer wants in all, $7 its new nonce (parallel arrays, a lease once). $8 the most bytes one
-- partition may bring, unless its first segment alone has more. Columns as in messages/pop/claim.sql; a row without segment
-- for what was acked and has nothing more, or is in a queue that delays, drops or pauses. Leases that were lost, or are
-- acked only in part, are not returned. The commit waits for the disk unless every queue concerned has relaxed acks.
-- locks:  the cursors, ascending
-- plan:   index scan backward using cursor_place
-- fences: by the nonce of the claim; what is leased on has a new epoch and the new nonce
with acked as (
  select *
  from unnest($1::int[], $2::int[], $3::uuid[], $4::bigint[], $5::int[], $6::int[], $7::uuid[]) with ordinality
    as acked (partition, grp, nonce, through, consumer, batch, next, o)
  order by acked.partition, acked.grp
), held as materialized (
  select seen.tid, cursor.partition, cursor.grp, acked.through, acked.consumer, acked.batch, acked.next, acked.o
  from acked
  cross join lateral {schema}.cursor_of(acked.partition, acked.grp) as seen
  cross join lateral (
    select cursor.partition, cursor.grp
    from {schema}.cursor
    where cursor.ctid = seen.tid
      and cursor.nonce = acked.nonce
      and cursor.lease_until is not null
      and cursor.leased_through = acked.through
    for update
  ) as cursor
), there as (
  select held.*, head.queue, head.next_seq - 1 as newest, queue.lease, queue.durable_acks,
         case
           when queue.delay = '0' and queue.window_buffer = '0' and queue.ttl = '0' and not queue.paused
             and head.first_seq - 1 <= held.through
             and not exists (select from {schema}.switch where switch.name = 'pop_paused' and switch.engaged)
             then greatest(0, head.next_seq - 1 - held.through)
           else 0
         end as there
  from held
  cross join lateral {schema}.head_of(held.partition) as head
  join {schema}.queue on queue.id = head.queue
), shared as (
  select there.*,
         least(there.there, there.batch - coalesce(
           sum(there.there) over (partition by there.consumer order by there.o rows between unbounded preceding and 1 preceding),
           0)) as share
  from there
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
                 and segment.last_seq > shared.through
                 and segment.last_seq <= (
                   select ending.last_seq
                   from {schema}.segment as ending
                   where ending.partition = shared.partition and ending.last_seq >= shared.through + shared.share
                   order by ending.last_seq
                   limit 1
                 )
             ) as weighed
             where weighed.place = 1 or weighed.before < $8::bigint
           ) - shared.through)
         end as take
  from shared
), claimed as (
  update {schema}.cursor
  set committed = taken.through,
      upto = greatest(cursor.upto, taken.newest),
      failures = 0,
      deliveries = least(taken.take, 1)::int,
      -- Never cleared while the cursor, on the row we hold, was told of more.
      due_at = case
        when taken.take > 0 then clock_timestamp() + taken.lease
        when greatest(cursor.upto, taken.newest) > taken.through then clock_timestamp()
      end,
      lease_until = case when taken.take > 0 then clock_timestamp() + taken.lease end,
      leased_through = taken.through + taken.take,
      epoch = case when taken.take > 0 then cursor.epoch + 1 else cursor.epoch end,
      nonce = case when taken.take > 0 then taken.next else cursor.nonce end
  from taken
  where cursor.ctid = taken.tid
  returning taken.consumer, cursor.grp, cursor.partition, taken.queue, cursor.epoch, taken.take, taken.through as start,
            cursor.leased_through as through, cursor.deliveries, cursor.failures, extract(epoch from taken.lease)::float8 as lease_s,
            cursor.due_at is not null and taken.take = 0 as more, taken.durable_acks
), disk as materialized (
  select set_config('synchronous_commit',
                    case when bool_or(claimed.durable_acks) then current_setting('synchronous_commit') else 'off' end,
                    true) as waits
  from claimed
)
select claimed.consumer, claimed.grp, claimed.partition, claimed.queue, claimed.epoch, claimed.start, claimed.through,
       claimed.deliveries, claimed.failures, claimed.lease_s, claimed.more, claimed.take > 0 as leased,
       part.first, part.at, part.key_id, part.gone, part.ids, part.transaction_ids, part.payloads, part.trace_ids, part.producers
from claimed
join disk on disk.waits is not null
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
  where segment.partition = claimed.partition
    and segment.last_seq > claimed.start
    and segment.last_seq <= (
      select ending.last_seq
      from {schema}.segment as ending
      where ending.partition = claimed.partition and ending.last_seq >= claimed.through
      order by ending.last_seq
      limit 1
    )
) as part on claimed.take > 0
order by claimed.consumer, claimed.partition, part.last_seq
