-- The group $2 of the queue $1, if both exist.
-- locks:  nothing
select consumer_group.id, consumer_group.settled
from {schema}.consumer_group
where consumer_group.queue = $1::int and consumer_group.name = $2::text
  and exists (select from {schema}.queue where queue.id = consumer_group.queue)
