-- The newest message of the partition $1 with the transaction id $2, among its newest 4,096
-- segments.
-- locks:  nothing
-- plan:   index scan using segment_pkey
select found.seq, found.at, found.key_id is not null as sealed, queue.name as queue, partition.name as partition,
       partition.uid as partition_uid, found.id, $2::text as transaction_id, found.trace_id, found.producer, found.payload,
       found.key_id, queue.id as queue_id
from {schema}.partition_row
join {schema}.queue on queue.id = partition_row.queue
join {schema}.partition on partition.id = partition_row.partition
cross join lateral (
  select held.last_seq - held.n + message.i as seq, held.at, held.key_id, message.id, segment.payloads[message.i] as payload,
         segment.trace_ids[message.i] as trace_id, segment.producers[message.i] as producer
  from (
    select segment.last_seq, segment.n, segment.at, segment.key_id, segment.gone, segment.ids, segment.transaction_ids
    from {schema}.segment
    where segment.partition = partition_row.partition and segment.last_seq >= partition_row.first_seq
    order by segment.last_seq desc
    limit 4096
  ) as held
  cross join lateral unnest(held.ids, held.transaction_ids) with ordinality as message (id, transaction_id, i)
  join {schema}.segment on segment.partition = partition_row.partition and segment.last_seq = held.last_seq
  where coalesce(message.transaction_id, message.id::text) = $2::text
    and held.last_seq - held.n + message.i >= partition_row.first_seq
    and not coalesce(message.i = any (held.gone), false)
  order by held.last_seq desc
  limit 1
) as found
where partition_row.partition = $1::int
