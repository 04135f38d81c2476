-- The jobs $1 are done, says whoever holds them by epochs $2 and nonces $3; they took $4 milliseconds. They are kept for $5 seconds
-- more. Returns the ids of those that were held so; the others are somebody else's by now.
-- locks:  the jobs
-- plan:   index scan using job_pkey
-- fences: epoch and nonce
with given as materialized (
  select
    ($1::bigint[])[n] as id,
    ($2::int[])[n] as epoch,
    ($3::bigint[])[n] as nonce,
    ($4::float8[])[n] as took_ms
  -- A series and not unnest: of this the planner expects many rows, and joins by hash however many there are.
  from generate_series(1, array_length($1, 1)) as n
), gone as (
  delete from {schema}.job
  using given
  where job.id = any ($1)
    and job.id = given.id
    and job.epoch = given.epoch
    and job.nonce = given.nonce
  returning job.id, job.epoch, job.attempt, job.queue, job.worker, given.took_ms
), kept as (
  insert into {schema}.job_done (id, state, finished_at, keep_until, epoch, attempt, queue, worker, took_ms)
  select
    id,
    'done',
    clock_timestamp(),
    clock_timestamp() + make_interval(secs => $5),
    epoch,
    attempt,
    queue,
    worker,
    took_ms
  from gone
)
select id
from gone
