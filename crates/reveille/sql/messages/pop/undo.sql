-- Put back messages that were acked by popping and reached no consumer: $1 partition, $2 group, $3
-- nonce, $4 the sequence before the first, $5 the last one. A cursor that another pop has moved
-- since stays as it is. Returns partition, group and queue of each cursor that was moved back.
-- locks:  the cursors, ascending
-- fences: by nonce
with held as materialized (
  select cursor.partition, cursor.grp, popped.nonce, popped.start, popped.through
  from unnest($1::int[], $2::int[], $3::uuid[], $4::bigint[], $5::bigint[])
    as popped (partition, grp, nonce, start, through)
  join {schema}.cursor on cursor.partition = popped.partition and cursor.grp = popped.grp
  where cursor.nonce = popped.nonce and cursor.committed = popped.through
  order by cursor.partition, cursor.grp
  for update of cursor
)
update {schema}.cursor
set committed = held.start,
    upto = greatest(cursor.upto, held.through),
    due_at = clock_timestamp()
from held
join {schema}.partition_row on partition_row.partition = held.partition
where cursor.partition = held.partition
  and cursor.grp = held.grp
  and cursor.nonce = held.nonce
  and cursor.committed = held.through
returning cursor.partition, cursor.grp, partition_row.queue
