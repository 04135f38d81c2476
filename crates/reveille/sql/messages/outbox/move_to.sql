-- Move the outbox of the partitions $1 into their logs, at most $2 messages.
-- locks:  the partition rows, ascending; the dedup rows of the keys
select gone.queue, gone.partition, gone.taken, gone.moved
from {schema}.move_partitions($1::int[], $2::int) as gone
