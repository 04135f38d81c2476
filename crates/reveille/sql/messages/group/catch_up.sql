-- Mark ready, for a newly registered group $1, what was pushed while it registered: in partitions
-- above $2, at most $3 of them. After the last of them the group is settled. Returns the last
-- partition read, and whether more may follow.
-- locks:  the cursors, ascending; then the group's row
with walked as materialized (
  select partition_row.partition, partition_row.next_seq - 1 as newest
  from {schema}.partition_row
  where partition_row.queue = (select consumer_group.queue from {schema}.consumer_group where consumer_group.id = $1::int)
    and partition_row.partition > $2::int
  order by partition_row.partition
  limit $3::int
), behind as materialized (
  select walked.partition, walked.newest
  from walked
  cross join lateral {schema}.cursor_of(walked.partition, $1::int) as seen
  cross join lateral (
    select
    from {schema}.cursor
    where cursor.partition = walked.partition and cursor.grp = $1::int and seen.upto < walked.newest
    for update
  ) as cursor
), caught_up as (
  update {schema}.cursor
  set upto = greatest(cursor.upto, behind.newest),
      due_at = case when behind.newest > cursor.committed then coalesce(cursor.due_at, clock_timestamp()) else cursor.due_at end
  from behind
  where cursor.partition = behind.partition and cursor.grp = $1::int
  returning 1
), settled as (
  update {schema}.consumer_group
  set settled = true
  where consumer_group.id = $1::int
    and (select count(*) from walked) < $3::int
    and (select count(*) from caught_up) >= 0
)
select coalesce(max(walked.partition), 0) as last, count(*) >= $3::int as more
from walked
