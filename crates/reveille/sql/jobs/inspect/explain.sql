-- Everything known about job $1. A job whose lease has ended is ready, and its worker is the last
-- one that held it.
-- locks:  nothing
select
  job_body.id,
  job_body.kind,
  coalesce(job.queue, job_body.queue) as queue,
  coalesce(job.priority, job_body.priority) as priority,
  coalesce(job_done.state, case
    when job.due_at <= clock_timestamp() then 'ready'
    when job.nonce is not null then 'running'
    else 'scheduled'
  end) as state,
  coalesce(job.attempt, job_done.attempt) as attempt,
  coalesce(job.max_attempts, job_body.max_attempts) as max_attempts,
  -- Nothing can be subtracted from an infinite time, which can only be written by hand.
  extract(epoch from case job.due_at
    when 'infinity' then '2200-01-01'
    when '-infinity' then '2000-01-01'
    else job.due_at
  end - clock_timestamp())::float8 as due_s,
  extract(epoch from clock_timestamp() - job_body.created_at)::float8 as age_s,
  extract(epoch from clock_timestamp() - job_done.finished_at)::float8 as finished_ago_s,
  coalesce(job.worker, job_done.worker) as worker,
  coalesce(job.cancel_requested, false) as cancel_requested,
  job.note,
  job.progress,
  job_done.code,
  job_done.reason,
  job_done.result,
  job_done.took_ms,
  job_body.args,
  job_body.tags,
  job_body.metadata,
  exists (
    select
    from {schema}.job_queue
    where job_queue.name = coalesce(job.queue, job_body.queue)
      and job_queue.paused
  ) as paused
from {schema}.job_body
left join {schema}.job on job.id = job_body.id
left join {schema}.job_done on job_done.id = job_body.id
where job_body.id = $1
