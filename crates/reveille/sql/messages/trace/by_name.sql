-- The traces with the name $1, the oldest first: at most $2, after skipping $3; with the total. The
-- page ends before bodies have more than $4 bytes together, unless the first alone has more: bodies
-- that are left out are never read.
-- locks:  nothing
with page as (
  select trace.id, trace.transaction_id, trace.consumer_group, trace.event_type, trace.names, trace.body, trace.at,
         queue.name as queue, partition.name as partition, partition.uid as partition_uid, count(*) over () as total
  from {schema}.trace
  join {schema}.partition on partition.id = trace.partition
  join {schema}.queue on queue.id = partition.queue
  where trace.names @> array[$1::text]
  order by trace.id
  limit $2::bigint
  offset $3::bigint
), weighed as (
  select page.*, row_number() over oldest as place, sum(octet_length(page.body)) over oldest as bytes
  from page
  window oldest as (order by page.id rows unbounded preceding)
)
select weighed.id, weighed.transaction_id, weighed.consumer_group, weighed.event_type, weighed.names, weighed.body, weighed.at,
       weighed.queue, weighed.partition, weighed.partition_uid, weighed.total
from weighed
where weighed.place = 1 or weighed.bytes <= $4::bigint
order by weighed.id
