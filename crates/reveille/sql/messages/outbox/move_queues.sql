-- Bring what foreign transactions have pushed to the queues $1 into their logs, at most about $2
-- messages.
-- locks:  the queues' rows for key share; then the heads, ascending; the dedup rows of the keys
select gone.queue, gone.partition, gone.taken, gone.moved
from {schema}.move_outbox($1::text[], $2::int) as gone
