-- How many messages wait in the queues $1 for the slowest of their groups; all that are kept when
-- there is no group.
-- locks:  nothing
select head.queue,
       sum(greatest(head.next_seq - 1 - greatest(coalesce(slowest.committed, 0), head.first_seq - 1), 0))::bigint as waiting
from {schema}.head
left join lateral (
  select min(coalesce(cursor.committed, 0)) as committed
  from {schema}.consumer_group
  left join {schema}.cursor on cursor.partition = head.partition and cursor.grp = consumer_group.id
  where consumer_group.queue = head.queue
) as slowest on true
where head.queue = any ($1::int[])
group by head.queue
