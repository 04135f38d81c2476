-- The namespaces there are, and how many queues each has; $1 at most.
-- locks:  nothing
select queue.namespace as name, count(*) as queues
from {schema}.queue
where queue.namespace <> ''
group by queue.namespace
order by queue.namespace
limit $1
