-- Delete cursors whose group is gone, in partitions above $1, at most $2 of them. Returns the last
-- partition read and how many cursors were deleted; nothing at the end.
-- locks:  the cursors, skipping locked ones
with walked as materialized (
  select partition_row.partition
  from {schema}.partition_row
  where partition_row.partition > $1::int
  order by partition_row.partition
  limit $2::bigint
), doomed as materialized (
  select cursor.partition, cursor.grp
  from walked
  join {schema}.cursor on cursor.partition = walked.partition
  where not exists (select from {schema}.consumer_group where consumer_group.id = cursor.grp)
  order by cursor.partition, cursor.grp
  for update of cursor skip locked
), gone as (
  delete from {schema}.cursor
  using doomed
  where cursor.partition = doomed.partition and cursor.grp = doomed.grp
  returning 1
)
select (select max(walked.partition) from walked) as last, (select count(*) from gone) as cursors
where exists (select from walked)
