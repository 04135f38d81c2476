-- A queue as it is shown to operators: its options, with times in seconds; how many partitions it
-- has, up to 10,000, and how many messages these keep. Written so that it becomes part of the
-- statement that calls it.
-- locks: nothing
create or replace function {schema}.described(in_queue {schema}.queue)
returns table (
  id int, uid uuid, name text, namespace text, task text, created_s float8, lease float8,
  retry_limit int, retry_delay float8, max_deliveries int, delay float8, window_buffer float8,
  ttl float8, max_size bigint, priority int, retention float8, completed_retention float8,
  max_wait float8, dedup_window float8, dead_letters boolean, encrypted boolean,
  require_lease boolean, durable_acks boolean, quiet boolean, paused boolean, echo text,
  partitions bigint, messages bigint
)
language sql
stable
as $reveille$
  select
    in_queue.id,
    in_queue.uid,
    in_queue.name,
    in_queue.namespace,
    in_queue.task,
    extract(epoch from in_queue.created_at)::float8,
    extract(epoch from in_queue.lease)::float8,
    in_queue.retry_limit,
    extract(epoch from in_queue.retry_delay)::float8,
    in_queue.max_deliveries,
    extract(epoch from in_queue.delay)::float8,
    extract(epoch from in_queue.window_buffer)::float8,
    extract(epoch from in_queue.ttl)::float8,
    in_queue.max_size,
    in_queue.priority,
    extract(epoch from in_queue.retention)::float8,
    extract(epoch from in_queue.completed_retention)::float8,
    extract(epoch from in_queue.max_wait)::float8,
    extract(epoch from in_queue.dedup_window)::float8,
    in_queue.dead_letters,
    in_queue.encrypted,
    in_queue.require_lease,
    in_queue.durable_acks,
    in_queue.quiet,
    in_queue.paused,
    in_queue.echo::text,
    kept.partitions,
    kept.messages
  from (
    select
      pg_catalog.count(*) as partitions,
      coalesce(pg_catalog.sum(counted.next_seq - counted.first_seq), 0)::bigint as messages
    from (
      select partition_row.next_seq, partition_row.first_seq
      from {schema}.partition_row
      where partition_row.queue = in_queue.id
      limit 10000
    ) as counted
  ) as kept
$reveille$;

comment on function {schema}.described({schema}.queue) is 'Reveille: a queue as it is shown to operators';
