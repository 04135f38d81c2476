-- The queue $1, with the columns of functions/described.sql.
-- locks:  nothing
-- plan:   index scan using queue_name_key
select described.*
from {schema}.queue
cross join lateral {schema}.described(queue) as described
where queue.name = $1::text
