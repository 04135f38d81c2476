-- Lock the rows of the partitions $1, ascending; returns those that exist.
-- locks:  the partition rows, ascending
-- plan:   index scan backward using partition_row_partition
select held.partition
from (select * from unnest($1::int[]) as asked (partition) order by asked.partition) as asked
cross join lateral {schema}.partition_row_of(asked.partition) as seen
cross join lateral (
  select partition_row.partition
  from {schema}.partition_row
  where partition_row.partition <= asked.partition
    and (partition_row.partition, partition_row.queue) >= (asked.partition, 0)
    and seen.tid is not null
  order by partition_row.partition desc
  limit 1
  for update
) as held
where held.partition = asked.partition
