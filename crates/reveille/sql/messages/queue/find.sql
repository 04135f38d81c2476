-- The queues named $1, with the options that pushes, pops and acks need. Times in seconds.
-- locks:  nothing
select queue.id, queue.uid, queue.name, queue.namespace, queue.task, queue.priority, queue.max_size,
       extract(epoch from queue.lease)::float8 as lease_s,
       extract(epoch from queue.delay)::float8 as delay_s,
       extract(epoch from queue.window_buffer)::float8 as window_s,
       queue.dedup_window > '0' as remembers,
       queue.encrypted, queue.require_lease, queue.durable_acks, queue.paused
from {schema}.queue
where queue.name = any ($1::text[])
