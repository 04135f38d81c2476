-- Make the cursors of queue $1 due that wait for a delay, because the delay became shorter: a claim
-- applies the new delay. Cursors that wait for a retry keep waiting.
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
