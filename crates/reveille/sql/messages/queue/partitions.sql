-- The partitions with the ids $1, and their queues.
-- locks:  nothing
-- plan:   index scan using partition_pkey
select partition.id, partition.queue, partition.name, partition.uid, queue.name as queue_name
from {schema}.partition
join {schema}.queue on queue.id = partition.queue
where partition.id = any ($1::int[])
