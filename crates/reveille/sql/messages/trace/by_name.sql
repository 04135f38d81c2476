-- What was noted under the name $1, the oldest first: at most $2, after skipping $3; with how many there are.
-- locks:  nothing
select trace.id, trace.transaction_id, trace.consumer_group, trace.event_type, trace.names, trace.body, trace.at,
       queue.name as queue, partition.name as partition, partition.uid as partition_uid, count(*) over () as total
from {schema}.trace
join {schema}.partition on partition.id = trace.partition
join {schema}.queue on queue.id = partition.queue
where trace.names @> array[$1::text]
order by trace.id
limit $2::bigint
offset $3::bigint
