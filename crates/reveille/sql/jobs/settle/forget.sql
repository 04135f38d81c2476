-- The jobs $1 are done, says whoever holds them by epochs $2 and nonces $3, and nothing of them is kept. Returns the ids of those
-- that were held so; the others are somebody else's by now.
-- locks:  the jobs, then their bodies
-- plan:   index scan using job_pkey
-- fences: epoch and nonce
with given as materialized (
  select
    ($1::bigint[])[n] as id,
    ($2::int[])[n] as epoch,
    ($3::bigint[])[n] as nonce
  -- A series and not unnest: of this the planner expects many rows, and joins by hash however many there are.
  from generate_series(1, array_length($1, 1)) as n
), gone as (
  delete from {schema}.job
  using given
  where job.id = any ($1)
    and job.id = given.id
    and job.epoch = given.epoch
    and job.nonce = given.nonce
  returning job.id, job.epoch
), bodies as (
  delete from {schema}.job_body
  where job_body.id = any (array(select id from gone))
), errors as (
  -- Of what was claimed before; by the epoch, for a redrive counts attempts from the start.
  delete from {schema}.job_error
  where job_error.job = any (array(select id from gone where epoch > 1))
)
select id
from gone
