-- Cancel job $1, and keep it for $2 seconds: at once when it waits, also after the end of a lease;
-- when it runs, its holder is to be asked to stop. Returns what was done ('cancelled', 'requested')
-- and the worker, or nothing when the job has ended or never existed.
-- locks:  the job
-- plan:   index scan using job_pkey
with target as materialized (
  select
    id,
    nonce is not null and due_at > clock_timestamp() as running,
    epoch,
    attempt,
    queue,
    worker
  from {schema}.job
  where id = $1
  for update
), gone as (
  delete from {schema}.job
  where job.id = (select id from target where not running)
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
    case when attempt > 0 then 'it was cancelled while it waited' else 'it was cancelled before it ran' end
  from target
  where not running
), asked as (
  update {schema}.job
  set cancel_requested = true
  where job.id = (select id from target where running)
)
select
  case when running then 'requested' else 'cancelled' end as said,
  worker
from target
