-- When each waited queue is due next: part of the heartbeat.
-- locks:  nothing
select
  waited.ordinal,
  extract(epoch from next.at - clock_timestamp()) as due_s
from unnest({queues}) with ordinality as waited (queue, ordinal)
cross join lateral (
  -- Nothing can be subtracted from an infinite time, which can only be written by hand.
  select min(greatest(first.due_at, '2000-01-01')) as at
  from generate_series(0, 9) as priorities (priority)
  cross join lateral (
    select job.due_at
    from {schema}.job
    where job.queue = waited.queue
      and job.priority = priorities.priority::smallint
    order by job.due_at, job.id
    limit 1
  ) as first
) as next
where next.at < clock_timestamp() + make_interval(secs => {horizon})
  and not exists (
    select
    from {schema}.job_queue
    where job_queue.name = waited.queue
      and job_queue.paused
  )
