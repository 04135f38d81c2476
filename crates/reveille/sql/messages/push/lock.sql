-- Take the heads of the partitions $1, ascending; returns those that exist.
-- locks:  the heads, ascending
-- plan:   index scan backward using head_place
select held.partition
from (select * from unnest($1::int[]) as asked (partition) order by asked.partition) as asked
cross join lateral {schema}.head_of(asked.partition) as seen
cross join lateral (
  select head.partition
  from {schema}.head
  where head.partition <= asked.partition
    and (head.partition, head.queue) >= (asked.partition, 0)
    and seen.tid is not null
  order by head.partition desc
  limit 1
  for update
) as held
where held.partition = asked.partition
