-- Complete the jobs $1, held under epochs $2 and nonces $3, which took $4 milliseconds. They are
-- kept for $5 seconds more; with 0 nothing of them is kept. Returns the ids of the jobs that were
-- held so; the leases of the others are lost.
-- locks:  the jobs, then their bodies and errors if nothing is kept
-- plan:   index scan using job_pkey
-- fences: epoch and nonce
with given as materialized (
  select
    ($1::bigint[])[n] as id,
    ($2::int[])[n] as epoch,
    ($3::bigint[])[n] as nonce,
    ($4::float8[])[n] as took_ms
  -- A series and not unnest: the planner expects many rows of a series, and joins by hash however
  -- many there are.
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
  where $5 > 0
), bodies as (
  delete from {schema}.job_body
  where $5 = 0
    and job_body.id = any (array(select id from gone))
), errors as (
  -- A job that was claimed before may have errors; by the epoch, because a redrive counts attempts
  -- from the start.
  delete from {schema}.job_error
  where $5 = 0
    and job_error.job = any (array(select id from gone where epoch > 1))
)
select id
from gone
