-- Delete the cursors of the group $1 of queue $2 in partitions above $3, at most $4 partitions.
-- Returns the last of them and how many cursors were deleted; nothing at the end.
-- locks:  the cursors, ascending
with walked as materialized (
  select partition_row.partition
  from {schema}.partition_row
  where partition_row.queue = $2::int and partition_row.partition > $3::int
  order by partition_row.partition
  limit $4::bigint
), doomed as materialized (
  select cursor.partition
  from {schema}.cursor
  join walked on walked.partition = cursor.partition
  where cursor.grp = $1::int
  order by cursor.partition
  for update of cursor
), gone as (
  delete from {schema}.cursor
  where cursor.grp = $1::int and cursor.partition in (select doomed.partition from doomed)
  returning 1
)
select (select max(walked.partition) from walked) as last, (select count(*) from gone) as deleted
where exists (select from walked)
