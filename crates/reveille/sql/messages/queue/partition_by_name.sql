-- The partition $2 of the queue $1, if both exist.
-- locks:  nothing
-- plan:   index scan using queue_name_key
select partition.id, partition.queue, partition.name, partition.uid, queue.name as queue_name
from {schema}.queue
join {schema}.partition on partition.queue = queue.id
where queue.name = $1::text and partition.name = $2::text
