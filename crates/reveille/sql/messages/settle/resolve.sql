-- The positions of messages: by partition $1, group's name $2, transaction id $3 (parallel arrays),
-- in the order given. Without a group `grp` is null; without such a message `seq` is null.
--
-- Two searches, the second for what the first did not find:
--   leased   the leased range of the group, all of it
--   settled  the newest 64 segments that the group has settled: a repeated ack is recognized, and
--            one that comes so late that 64 segments were settled since is answered as not found
-- locks:  nothing
-- plan:   index scan using segment_pkey
select ack.position::int as item, partition_row.queue, queue.require_lease, consumer_group.id as grp,
       cursor.nonce, cursor.committed, coalesce(leased.seq, settled.seq) as seq
from unnest($1::int[], $2::text[], $3::text[]) with ordinality
  as ack (partition, consumer, transaction_id, position)
left join lateral {schema}.partition_row_of(ack.partition) as partition_row on true
left join {schema}.queue on queue.id = partition_row.queue
left join {schema}.consumer_group on consumer_group.queue = partition_row.queue and consumer_group.name = ack.consumer
left join lateral {schema}.cursor_of(ack.partition, consumer_group.id) as cursor on true
left join lateral (
  select segment.last_seq - segment.n + message.place as seq
  from {schema}.segment
  cross join lateral unnest(segment.ids, segment.transaction_ids) with ordinality as message (id, transaction_id, place)
  where segment.partition = ack.partition
    and segment.last_seq > cursor.committed
    and segment.last_seq <= (
      select ending.last_seq
      from {schema}.segment as ending
      where ending.partition = ack.partition and ending.last_seq >= cursor.leased_through
      order by ending.last_seq
      limit 1
    )
    and segment.last_seq - segment.n + message.place between cursor.committed + 1 and cursor.leased_through
    and coalesce(message.transaction_id, message.id::text) = ack.transaction_id
  order by segment.last_seq
  limit 1
) as leased on true
left join lateral (
  select newest.last_seq - newest.n + message.place as seq
  from (
    select segment.last_seq, segment.n, segment.ids, segment.transaction_ids
    from {schema}.segment
    -- No lower bound: the limit is one.
    where segment.partition = ack.partition and segment.last_seq - segment.n < cursor.committed
      and segment.last_seq <= coalesce((
        select ending.last_seq
        from {schema}.segment as ending
        where ending.partition = ack.partition and ending.last_seq >= cursor.committed
        order by ending.last_seq
        limit 1
      ), cursor.committed)
    order by segment.last_seq desc
    limit 64
  ) as newest
  cross join lateral unnest(newest.ids, newest.transaction_ids) with ordinality as message (id, transaction_id, place)
  where leased.seq is null
    and newest.last_seq - newest.n + message.place <= cursor.committed
    and coalesce(message.transaction_id, message.id::text) = ack.transaction_id
  limit 1
) as settled on true
order by ack.position
