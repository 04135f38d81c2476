-- What was noted of the message $2 of partition $1, the oldest first, at most $3.
-- locks:  nothing
-- plan:   index scan using trace_message
select trace.id, trace.transaction_id, trace.consumer_group, trace.event_type, trace.names, trace.body, trace.at,
       queue.name as queue, partition.name as partition, partition.uid as partition_uid
from {schema}.trace
join {schema}.partition on partition.id = trace.partition
join {schema}.queue on queue.id = partition.queue
where trace.partition = $1::int and trace.transaction_id = $2::text
order by trace.id
limit $3::bigint
