-- The partitions with the public ids $1.
-- locks:  nothing
-- plan:   index scan using partition_uid_key
select partition.id, partition.queue, partition.name, partition.uid, queue.name as queue_name
from unnest($1::uuid[]) as asked (uid)
cross join lateral (
  select partition.id, partition.queue, partition.name, partition.uid
  from {schema}.partition
  where partition.uid = asked.uid
  limit 1
) as partition
join {schema}.queue on queue.id = partition.queue
