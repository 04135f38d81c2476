-- Renew the leases of the jobs $1, held under epochs $2 and nonces $3, for $4 seconds, each its
-- own. Returns for each whether its lease is lost, and whether it is to be cancelled. A renewal
-- that is lost in a crash only shortens the lease, so it does not wait for the disk.
-- locks:  the jobs (skip locked: what is being settled needs no renewal)
-- plan:   index scan using job_pkey
-- fences: epoch and nonce
with given as materialized (
  select
    ($1::bigint[])[n] as id,
    ($2::int[])[n] as epoch,
    ($3::bigint[])[n] as nonce,
    ($4::float8[])[n] as lease_s
  -- A series and not unnest: the planner expects many rows of a series, and joins by hash however
  -- many there are.
  from generate_series(1, array_length($1, 1)) as n
  where set_config('synchronous_commit', 'off', true) is not null
), held as materialized (
  select job.id
  from {schema}.job
  where job.id = any ($1)
  order by job.id
  for no key update skip locked
), kept as (
  update {schema}.job
  set due_at = clock_timestamp() + make_interval(secs => given.lease_s)
  from given
  where job.id = any (array(select id from held))
    and job.id = given.id
    and job.epoch = given.epoch
    and job.nonce = given.nonce
  returning job.id, job.cancel_requested
)
select
  given.id,
  coalesce(kept.cancel_requested, false) as cancel_requested,
  -- A row that another transaction has locked was not renewed and is not lost: it still reads as
  -- ours.
  kept.id is null and there.id is null as lost
from given
left join kept on kept.id = given.id
left join {schema}.job as there
  on there.id = any ($1)
  and there.id = given.id
  and there.epoch = given.epoch
  and there.nonce = given.nonce
