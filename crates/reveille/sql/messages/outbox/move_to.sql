-- Bring what foreign transactions have pushed to the partitions $1 into their logs, at most $2
-- messages.
-- locks:  the heads, ascending; the dedup rows of the keys
select gone.queue, gone.partition, gone.taken, gone.moved
from {schema}.move_partitions($1::int[], $2::int) as gone
