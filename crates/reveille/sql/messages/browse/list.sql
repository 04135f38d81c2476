-- Messages of the queues named $1, in namespace $2, with task $3, in partitions named $4, pushed
-- since $5 and before $6, in the state $7 (null for any of them), the newest first: at most $8,
-- after skipping $9. Reads the 1,000 partitions with the latest pushes, and the newest segments of
-- each.
-- locks:  nothing
with place as materialized (
  select partition_row.partition, partition_row.queue, partition_row.first_seq
  from {schema}.queue
  join {schema}.partition_row on partition_row.queue = queue.id
  join {schema}.partition on partition.id = partition_row.partition
  where ($1::text is null or queue.name = $1)
    and ($2::text is null or queue.namespace = $2)
    and ($3::text is null or queue.task = $3)
    and ($4::text is null or partition.name = $4)
    and ($5::timestamptz is null or partition_row.last_at >= $5)
    and partition_row.next_seq > partition_row.first_seq
  order by partition_row.last_at desc
  limit 1000
), held as materialized (
  select place.queue, place.first_seq, newest.*
  from place
  cross join lateral (
    select segment.partition, segment.last_seq, segment.n, segment.at, segment.gone, segment.key_id
    from {schema}.segment
    where segment.partition = place.partition
      and segment.last_seq >= place.first_seq
      and ($5::timestamptz is null or segment.at >= $5)
      and ($6::timestamptz is null or segment.at < $6)
    order by segment.last_seq desc
    limit case when $7::text is null then $8::bigint + $9::bigint else 200 end
  ) as newest
  order by newest.at desc, newest.partition, newest.last_seq desc
  limit case when $7::text is null then $8::bigint + $9::bigint else 2000 end
), message as (
  select held.queue, held.partition, held.at, held.key_id, held.last_seq, held.last_seq - held.n + place.i as seq, place.i
  from held
  cross join lateral generate_series(held.n, 1, -1) as place (i)
  where held.last_seq - held.n + place.i >= held.first_seq and not coalesce(place.i = any (held.gone), false)
), judged as (
  select message.*, counted.groups, counted.settled, counted.state
  from message
  cross join lateral (
    select count(consumer_group.id) as groups, count(*) filter (where cursor.committed >= message.seq) as settled,
           case
             when exists (
               select from {schema}.dead_letter where dead_letter.partition = message.partition and dead_letter.seq = message.seq
             ) then 'dead'
             when count(consumer_group.id) > 0 and count(*) filter (where cursor.committed >= message.seq) = count(consumer_group.id)
               then 'completed'
             when bool_or(
               cursor.lease_until > clock_timestamp() and message.seq between cursor.committed + 1 and cursor.leased_through
             ) then 'leased'
             else 'pending'
           end as state
    from {schema}.consumer_group
    left join {schema}.cursor on cursor.partition = message.partition and cursor.grp = consumer_group.id
    where consumer_group.queue = message.queue
  ) as counted
  where $7::text is null or counted.state = $7
  order by message.at desc, message.partition, message.seq desc
  limit $8::bigint
  offset $9::bigint
)
select judged.seq, judged.at, judged.key_id is not null as sealed, judged.groups, judged.settled, judged.state,
       queue.name as queue, partition.name as partition, partition.uid as partition_uid, segment.ids[judged.i] as id,
       coalesce(segment.transaction_ids[judged.i], segment.ids[judged.i]::text) as transaction_id,
       segment.trace_ids[judged.i] as trace_id, segment.producers[judged.i] as producer,
       null::bytea as payload, judged.key_id
from judged
join {schema}.segment on segment.partition = judged.partition and segment.last_seq = judged.last_seq
join {schema}.queue on queue.id = judged.queue
join {schema}.partition on partition.id = judged.partition
order by judged.at desc, judged.partition, judged.seq desc
