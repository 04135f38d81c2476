-- When the queues $1 are due next, read when nothing more could be claimed: for each the seconds
-- until its next job is due (a schedule, a retry, the end of a lease), whether one is due that
-- another transaction has locked, and whether it is quiet. Nothing of a paused queue.
-- locks:  nothing
-- plan:   index scan using job_due
select
  asked.queue,
  -- No job can be enqueued for later than that. But an infinite time that was written by hand must
  -- not keep its queue from being claimed, and before version 17 nothing can be subtracted from it.
  extract(epoch from min(least(due.due_at, '2200-01-01')) filter (where due.due_at > clock.now) - clock.now)::float8 as due_s,
  coalesce(bool_or(due.due_at <= clock.now), false) as contended,
  coalesce(bool_or(job_queue.quiet), false) as quiet
from (select clock_timestamp() as now offset 0) as clock
cross join unnest($1::text[]) as asked (queue)
left join {schema}.job_queue on job_queue.name = asked.queue
left join lateral (
  select first.due_at
  from generate_series(0, 9) as priorities (priority)
  cross join lateral (
    (
      select job.due_at
      from {schema}.job
      where job.queue = asked.queue
        and job.priority = priorities.priority::smallint
        and job.due_at > clock.now
      order by job.due_at, job.id
      limit 1
    )
    union all
    (
      select job.due_at
      from {schema}.job
      where job.queue = asked.queue
        and job.priority = priorities.priority::smallint
        and job.due_at <= clock.now
      order by job.due_at, job.id
      limit 1
    )
  ) as first
) as due on not coalesce(job_queue.paused, false)
group by asked.queue, clock.now
