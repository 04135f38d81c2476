-- The queues whose name is after $1, of namespace $2 and task $3 and with $4 in their name (each null for any), by name, $5 at
-- most; with how many partitions they have and how many messages those keep, of the first 10,000 partitions.
-- locks:  nothing
select queue.id, queue.uid, queue.name, queue.namespace, queue.task,
       extract(epoch from queue.created_at)::float8 as created_s, extract(epoch from queue.lease)::float8 as lease,
       queue.retry_limit, extract(epoch from queue.retry_delay)::float8 as retry_delay, queue.max_deliveries,
       extract(epoch from queue.delay)::float8 as delay, extract(epoch from queue.window_buffer)::float8 as window_buffer,
       extract(epoch from queue.ttl)::float8 as ttl, queue.max_size, queue.priority,
       extract(epoch from queue.retention)::float8 as retention,
       extract(epoch from queue.completed_retention)::float8 as completed_retention,
       extract(epoch from queue.max_wait)::float8 as max_wait,
       extract(epoch from queue.dedup_window)::float8 as dedup_window, queue.dead_letters, queue.encrypted,
       queue.require_lease, queue.durable_acks, queue.quiet, queue.paused, queue.echo::text as echo,
       held.partitions, held.messages
from {schema}.queue
cross join lateral (
  select count(*) as partitions, coalesce(sum(head.next_seq - head.first_seq), 0)::bigint as messages
  from (select * from {schema}.head where head.queue = queue.id limit 10000) as head
) as held
where queue.name > $1::text
  and ($2::text is null or queue.namespace = $2)
  and ($3::text is null or queue.task = $3)
  and ($4::text is null or strpos(queue.name, $4) > 0)
order by queue.name
limit $5
