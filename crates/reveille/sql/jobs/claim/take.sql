-- Claim up to $5 due jobs of several queues for worker $6 under nonce $7, leased for $8 seconds.
--
-- Queues, served in the order given; one that is paused gives no job:
--   $1     name
--   $2     how many jobs at most
--   $3 $4  the low-water marks of its priorities 0 to 9, ten for each queue: due time and id. Jobs
--          at or below a mark are left for a claim from the start
-- In a queue the lower priority number comes first, then the job that has been due longer.
--
-- A job that has had all its attempts is not leased but ends as dead: its last holder died with it.
-- A job whose holder was lost before it stopped, as it was asked to, ends as cancelled. For how
-- many seconds these are kept:
--   $9     a cancelled job
--   $10    a dead one; null for ever
--
-- Returns one row for each job that was picked, with the time it was due and, if it ended, its
-- state. A claim need not survive a crash, so it does not wait for the disk.
--
-- Steps, with the table that each writes:
--   picked   locks due jobs; spent are those that end here
--   taken    job: leases the others
--   spent    job: deletes those that end
--   buried   job_done: notes how they ended
-- locks:  the jobs that are picked (skip locked)
-- plan:   index scan using job_due
-- fences: epoch and nonce, which every later statement on the job must present
with clock as materialized (
  select clock_timestamp() as now
  where set_config('synchronous_commit', 'off', true) is not null
), picked as materialized (
  select found.*
  from unnest($1::text[], $2::int[]) with ordinality as asked (queue, most, place)
  cross join lateral (
    select due.*
    from generate_series(0, 9) as priorities (priority)
    cross join lateral (
      select
        job.id,
        job.due_at,
        job.epoch,
        job.attempt,
        job.max_attempts,
        job.priority,
        job.queue,
        job.worker,
        job.cancel_requested,
        job.cancel_requested or job.attempt >= job.max_attempts as spent
      from {schema}.job
      where job.queue = asked.queue
        and job.priority = priorities.priority::smallint
        and job.due_at <= (select now from clock)
        and (job.due_at, job.id) > (
          ($3::timestamptz[])[(asked.place - 1) * 10 + priorities.priority + 1],
          ($4::bigint[])[(asked.place - 1) * 10 + priorities.priority + 1]
        )
      order by job.due_at, job.id
      limit asked.most
      for no key update skip locked
    ) as due
    limit asked.most
  ) as found
  where not exists (
    select
    from {schema}.job_queue
    where job_queue.name = asked.queue
      and job_queue.paused
  )
  limit $5
), taken as (
  update {schema}.job
  set
    due_at = clock_timestamp() + make_interval(secs => $8),
    nonce = $7,
    epoch = job.epoch + 1,
    attempt = job.attempt + 1,
    worker = $6,
    note = null
  where job.id = any (array(select id from picked where not spent))
), spent as (
  delete from {schema}.job
  where job.id = any (array(select id from picked where spent))
), buried as (
  insert into {schema}.job_done (id, state, finished_at, keep_until, epoch, attempt, queue, worker, code, reason)
  select
    id,
    case when cancel_requested then 'cancelled' else 'dead' end,
    clock_timestamp(),
    clock_timestamp() + make_interval(secs => case when cancel_requested then $9 else $10 end),
    epoch,
    attempt,
    queue,
    worker,
    case when cancel_requested then 'cancelled' else 'lease_expired' end,
    case
      when cancel_requested then 'it was to be cancelled when its worker was lost'
      else 'the last attempt ended without a word: its worker was lost, or held it too long'
    end
  from picked
  where spent
)
select
  picked.id,
  picked.due_at as was_due_at,
  case
    when picked.spent and picked.cancel_requested then 'cancelled'
    when picked.spent then 'dead'
  end as ended,
  -- As the update above leaves them: the row is locked, so nothing else can have raised them.
  picked.epoch + 1 as epoch,
  picked.attempt + (not picked.spent)::int as attempt,
  picked.max_attempts,
  picked.priority,
  picked.queue,
  job_body.kind,
  job_body.args,
  job_body.timeout_ms,
  job_body.tags,
  job_body.metadata,
  extract(epoch from (select now from clock) - picked.due_at)::float8 as waited_s
from picked
left join {schema}.job_body
  on job_body.id = any (array(select id from picked))
  and job_body.id = picked.id
