-- The queue $1, as described.sql shows it.
-- locks:  nothing
-- plan:   index scan using queue_name_key
select described.*
from {schema}.queue
cross join lateral {schema}.described(queue) as described
where queue.name = $1::text
