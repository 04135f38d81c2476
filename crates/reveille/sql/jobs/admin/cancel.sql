-- Cancel job $1, and keep it for $2 seconds: at once when it waits; when it runs, its holder is to be told. Returns what was
-- done ('cancelled', 'requested') and to whom, or nothing when it has ended or never was.
-- locks:  the job
-- plan:   index scan using job_pkey
with target as materialized (
  select
    id,
    nonce,
    epoch,
    attempt,
    queue,
    worker
  from {schema}.job
  where id = $1
  for update
), gone as (
  delete from {schema}.job
  where job.id = (select id from target where nonce is null)
), buried as (
  insert into {schema}.job_done (id, state, finished_at, keep_until, epoch, attempt, queue, code, reason)
  select
    id,
    'cancelled',
    clock_timestamp(),
    clock_timestamp() + make_interval(secs => $2),
    epoch,
    attempt,
    queue,
    'cancelled',
    'it was cancelled before it ran'
  from target
  where nonce is null
), asked as (
  update {schema}.job
  set cancel_requested = true
  where job.id = (select id from target where nonce is not null)
)
select
  case when nonce is null then 'cancelled' else 'requested' end as said,
  worker
from target
