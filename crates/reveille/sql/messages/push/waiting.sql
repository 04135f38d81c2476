-- How many messages wait in the queues $1 for the slowest of their groups; without a group, all
-- that are kept.
-- locks:  nothing
select partition_row.queue,
       sum(greatest(partition_row.next_seq - 1 - greatest(coalesce(slowest.committed, 0), partition_row.first_seq - 1), 0))::bigint as waiting
from {schema}.partition_row
left join lateral (
  select min(coalesce(cursor.committed, 0)) as committed
  from {schema}.consumer_group
  left join {schema}.cursor on cursor.partition = partition_row.partition and cursor.grp = consumer_group.id
  where consumer_group.queue = partition_row.queue
) as slowest on true
where partition_row.queue = any ($1::int[])
group by partition_row.queue
