-- Which partitions the leases $1 (nonces) still hold: for releasing what a caller knows only by its
-- lease.
-- locks:  nothing
-- plan:   index scan using cursor_nonce
select cursor.nonce, cursor.partition, cursor.grp, head.queue
from {schema}.cursor
join {schema}.head on head.partition = cursor.partition
where cursor.nonce = any ($1::uuid[]) and cursor.lease_until is not null
order by cursor.partition, cursor.grp
