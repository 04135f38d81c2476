-- Move the outbox of the queues $1 into their logs, at most about $2 messages.
-- locks:  the queues' rows for key share; then the partition rows, ascending; the dedup rows of the
--         keys
select gone.queue, gone.partition, gone.taken, gone.moved
from {schema}.move_outbox($1::text[], $2::int) as gone
