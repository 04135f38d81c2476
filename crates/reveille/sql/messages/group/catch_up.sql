-- Tell the cursors of a newly registered group $1 what was pushed while it registered, and call it settled.
-- locks:  the cursors, ascending; then the group's row
with behind as materialized (
  select cursor.partition, head.next_seq - 1 as newest
  from {schema}.consumer_group
  join {schema}.head on head.queue = consumer_group.queue
  join {schema}.cursor on cursor.partition = head.partition and cursor.grp = consumer_group.id
  where consumer_group.id = $1::int and cursor.upto < head.next_seq - 1
  order by cursor.partition
  for update of cursor
), told as (
  update {schema}.cursor
  set upto = greatest(cursor.upto, behind.newest),
      due_at = case when behind.newest > cursor.committed then coalesce(cursor.due_at, clock_timestamp()) else cursor.due_at end
  from behind
  where cursor.partition = behind.partition and cursor.grp = $1::int
  returning 1
)
update {schema}.consumer_group
set settled = true
where consumer_group.id = $1::int and (select count(*) from told) >= 0
