-- The partitions that the leases $1 (nonces) still hold: for a caller that releases by its lease
-- alone.
-- locks:  nothing
-- plan:   index scan using cursor_nonce
select cursor.nonce, cursor.partition, cursor.grp, partition_row.queue
from {schema}.cursor
join {schema}.partition_row on partition_row.partition = cursor.partition
where cursor.nonce = any ($1::uuid[]) and cursor.lease_until is not null
order by cursor.partition, cursor.grp
