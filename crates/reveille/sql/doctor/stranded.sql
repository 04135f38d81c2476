-- How many cursors have messages before them of which neither they nor the head say so. There are
-- none, in any snapshot, but for groups that are being made: these are told in a second step.
-- Reads every head and cursor: for an operator who asks, and for tests.
-- locks:  nothing
select count(*) as stranded
from {schema}.partition_row
join {schema}.cursor on cursor.partition = partition_row.partition
where partition_row.next_seq - 1 > cursor.committed and cursor.due_at is null and partition_row.new_since is null
  and not exists (select from {schema}.consumer_group where consumer_group.id = cursor.grp and not consumer_group.settled)
