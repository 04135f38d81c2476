-- The partition that the outside world knows as $1.
-- locks:  nothing
-- plan:   index scan using partition_uid_key
select partition.id, partition.queue, partition.name, partition.uid, queue.name as queue_name
from {schema}.partition
join {schema}.queue on queue.id = partition.queue
where partition.uid = $1::uuid
