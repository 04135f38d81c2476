-- Every queue that holds jobs or has settings: how many jobs wait, are due, and run, each counted
-- up to $1; for how long the oldest has been due; and whether the queue is paused. A job whose
-- lease has ended is due since then, because its worker is lost.
-- locks:  nothing
with recursive named as (
  (select queue from {schema}.job order by queue limit 1)
  union all
  select (
    select job.queue
    from {schema}.job
    where job.queue > named.queue
    order by job.queue
    limit 1
  )
  from named
  where named.queue is not null
), known as (
  select queue from named where queue is not null
  union
  select name from {schema}.job_queue
)
select
  known.queue,
  held.waiting,
  held.ready,
  held.running,
  held.oldest_s,
  coalesce(job_queue.paused, false) as paused,
  coalesce(job_queue.quiet, false) as quiet
from known
left join {schema}.job_queue on job_queue.name = known.queue
cross join lateral (
  select
    count(*) filter (where few.nonce is null and few.due_at > clock_timestamp()) as waiting,
    count(*) filter (where few.due_at <= clock_timestamp()) as ready,
    count(*) filter (where few.nonce is not null and few.due_at > clock_timestamp()) as running,
    -- Nothing can be subtracted from an infinite time, which can only be written by hand.
    extract(
      epoch from clock_timestamp()
      - min(greatest(few.due_at, '2000-01-01')) filter (where few.due_at <= clock_timestamp())
    )::float8 as oldest_s
  from (
    select
      job.nonce,
      job.due_at
    from {schema}.job
    where job.queue = known.queue
    order by job.priority, job.due_at
    limit $1
  ) as few
) as held
order by known.queue
