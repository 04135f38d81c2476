-- The tasks there are, and how many queues each has; $1 at most.
-- locks:  nothing
select queue.task as name, count(*) as queues
from {schema}.queue
where queue.task <> ''
group by queue.task
order by queue.task
limit $1
