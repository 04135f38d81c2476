-- Let the cursors of queue $1 that wait for a delay be looked at now, because the delay became
-- shorter; whoever claims judges by the new one. Those that wait for a retry wait on.
-- locks:  the cursors, ascending
with waiting as materialized (
  select cursor.partition, cursor.grp
  from {schema}.partition_row
  join {schema}.cursor on cursor.partition = partition_row.partition
  where partition_row.queue = $1::int
    and cursor.due_at > clock_timestamp()
    and cursor.lease_until is null
    and cursor.failures = 0
  order by cursor.partition, cursor.grp
  for update of cursor
)
update {schema}.cursor
set due_at = clock_timestamp()
from waiting
where cursor.partition = waiting.partition and cursor.grp = waiting.grp
