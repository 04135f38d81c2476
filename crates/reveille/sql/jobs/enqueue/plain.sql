-- Enqueue jobs that are not unique: kinds $1, args $2, queues $3, priorities $4, run_ats $5 or
-- delays $6 in seconds, attempts $7, timeouts $8 in milliseconds, backoffs $9, tags $10 (joined by
-- line breaks), metadata $11. Returns their ids, which rise in the order of the items.
-- locks:  nothing that exists
with added as (
  insert into {schema}.job_body (
    kind, queue, priority, run_at, max_attempts, timeout_ms, backoff, tags, metadata, args
  )
  select
    given.kind,
    given.queue,
    given.priority,
    greatest(
      coalesce(given.run_at, clock_timestamp() + make_interval(secs => coalesce(given.delay, 0))),
      '2000-01-01'
    ),
    given.max_attempts,
    given.timeout_ms,
    given.backoff,
    string_to_array(given.tags, E'\n'),
    given.metadata,
    given.args
  from unnest(
    $1::text[], $2::bytea[], $3::text[], $4::smallint[], $5::timestamptz[], $6::float8[], $7::smallint[], $8::bigint[],
    $9::text[], $10::text[], $11::bytea[]
  ) with ordinality as given (
    kind, args, queue, priority, run_at, delay, max_attempts, timeout_ms, backoff, tags, metadata, place
  )
  order by given.place
  returning id, queue, priority, run_at, max_attempts
), live as (
  insert into {schema}.job (id, due_at, max_attempts, priority, queue)
  select
    id,
    run_at,
    max_attempts,
    priority,
    queue
  from added
)
select id
from added
order by id
