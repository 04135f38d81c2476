-- Release lost claims by their nonces $1, as if they had not been made; returns their cursors.
-- locks:  the cursors, ascending
-- plan:   index scan using cursor_nonce
-- fences: by nonce
with held as materialized (
  select cursor.partition, cursor.grp, cursor.nonce
  from {schema}.cursor
  where cursor.nonce = any ($1::uuid[]) and cursor.lease_until is not null
  order by cursor.partition, cursor.grp
  for update
)
update {schema}.cursor
set lease_until = null,
    upto = greatest(cursor.upto, partition_row.next_seq - 1),
    due_at = case when greatest(cursor.upto, partition_row.next_seq - 1) > cursor.committed then clock_timestamp() end,
    deliveries = greatest(cursor.deliveries - 1, 0)
from held
join {schema}.partition_row on partition_row.partition = held.partition
where cursor.partition = held.partition
  and cursor.grp = held.grp
  and cursor.nonce = held.nonce
  and cursor.lease_until is not null
returning cursor.partition, cursor.grp, partition_row.queue
