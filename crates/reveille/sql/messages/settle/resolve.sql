-- The positions of messages: by partition $1, group's name $2, transaction id $3 (parallel arrays),
-- in the order given. Searches first in the leased range of the group, then in the newest segments
-- it has settled. Without a group `grp` is null; without such a message `seq` is null.
-- locks:  nothing
-- plan:   index scan using segment_pkey
select asked.o::int as item, partition_row.queue, queue.require_lease, consumer_group.id as grp, cursor.nonce, cursor.committed,
       coalesce(leased.seq, settled.seq) as seq
from unnest($1::int[], $2::text[], $3::text[]) with ordinality as asked (partition, consumer, transaction_id, o)
left join lateral {schema}.partition_row_of(asked.partition) as partition_row on true
left join {schema}.queue on queue.id = partition_row.queue
left join {schema}.consumer_group on consumer_group.queue = partition_row.queue and consumer_group.name = asked.consumer
left join lateral {schema}.cursor_of(asked.partition, consumer_group.id) as cursor on true
left join lateral (
  select segment.last_seq - segment.n + message.i as seq
  from {schema}.segment
  cross join lateral unnest(segment.ids, segment.transaction_ids) with ordinality as message (id, transaction_id, i)
  where segment.partition = asked.partition
    and segment.last_seq > cursor.committed
    and segment.last_seq <= (
      select ending.last_seq
      from {schema}.segment as ending
      where ending.partition = asked.partition and ending.last_seq >= cursor.leased_through
      order by ending.last_seq
      limit 1
    )
    and segment.last_seq - segment.n + message.i between cursor.committed + 1 and cursor.leased_through
    and coalesce(message.transaction_id, message.id::text) = asked.transaction_id
  order by segment.last_seq
  limit 1
) as leased on true
left join lateral (
  select newest.last_seq - newest.n + message.i as seq
  from (
    select segment.last_seq, segment.n, segment.ids, segment.transaction_ids
    from {schema}.segment
    where segment.partition = asked.partition and segment.last_seq - segment.n < cursor.committed
      and segment.last_seq <= coalesce((
        select ending.last_seq
        from {schema}.segment as ending
        where ending.partition = asked.partition and ending.last_seq >= cursor.committed
        order by ending.last_seq
        limit 1
      ), cursor.committed)
    order by segment.last_seq desc
    limit 64
  ) as newest
  cross join lateral unnest(newest.ids, newest.transaction_ids) with ordinality as message (id, transaction_id, i)
  where leased.seq is null
    and newest.last_seq - newest.n + message.i <= cursor.committed
    and coalesce(message.transaction_id, message.id::text) = asked.transaction_id
  limit 1
) as settled on true
order by asked.o
