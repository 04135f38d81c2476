-- Which partitions the leases $1 (nonces) still hold: for releasing what a caller knows only by its
-- lease.
-- locks:  nothing
-- plan:   index scan using cursor_nonce
select cursor.nonce, cursor.partition, cursor.grp, partition_row.queue
from {schema}.cursor
join {schema}.partition_row on partition_row.partition = cursor.partition
where cursor.nonce = any ($1::uuid[]) and cursor.lease_until is not null
order by cursor.partition, cursor.grp
