-- The queues of namespace $1 and task $2, each null for any, the first to be served first; $3 at
-- most. Columns as in messages/queue/find.sql.
-- locks:  nothing
select queue.id, queue.uid, queue.name, queue.namespace, queue.task, queue.priority, queue.max_size,
       extract(epoch from queue.lease)::float8 as lease_s,
       extract(epoch from queue.delay)::float8 as delay_s,
       extract(epoch from queue.window_buffer)::float8 as window_s,
       queue.dedup_window > '0' as remembers,
       queue.encrypted, queue.require_lease, queue.durable_acks, queue.paused
from {schema}.queue
where ($1::text is null or queue.namespace = $1) and ($2::text is null or queue.task = $2)
order by queue.priority desc, queue.id
limit $3
