-- The group $2 in queue $1, or in all of them (null), in the order of ids.
-- locks:  nothing
select consumer_group.id, consumer_group.queue, queue.name as queue_name
from {schema}.consumer_group
join {schema}.queue on queue.id = consumer_group.queue
where consumer_group.name = $2::text and ($1::text is null or queue.name = $1)
order by consumer_group.id
