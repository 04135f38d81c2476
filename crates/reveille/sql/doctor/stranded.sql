-- How many cursors have undelivered messages and are not due, in partitions without new_since:
-- their consumers would not be woken. There are none in any snapshot, except of groups that are
-- being created: these catch up in a second step. Reads every partition row and cursor: for
-- operators and tests.
-- locks:  nothing
select count(*) as stranded
from {schema}.partition_row
join {schema}.cursor on cursor.partition = partition_row.partition
where partition_row.next_seq - 1 > cursor.committed and cursor.due_at is null and partition_row.new_since is null
  and not exists (select from {schema}.consumer_group where consumer_group.id = cursor.grp and not consumer_group.settled)
