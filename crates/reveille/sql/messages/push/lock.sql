-- Take the heads of the partitions $1, ascending; returns those that exist.
-- locks:  the heads, ascending
-- plan:   index scan backward using head_place
select held.partition
from (select * from unnest($1::int[]) as asked (partition) order by asked.partition) as asked
join lateral (
  select head.partition
  from {schema}.head
  where head.partition <= asked.partition
    and (head.partition, head.queue) >= (asked.partition, 0)
  order by head.partition desc
  limit 1
) as seen on seen.partition = asked.partition
cross join lateral (
  select head.partition
  from {schema}.head
  where head.partition <= seen.partition
    and (head.partition, head.queue) >= (seen.partition, 0)
  order by head.partition desc
  limit 1
  for update
) as held
where held.partition = seen.partition
