-- Make up to $5 dead jobs ready again, with all their attempts before them: those of ids $1, queue
-- $2, kind $3 and error code $4, each of which may be null for any. Returns their ids and queues.
-- locks:  the dead jobs (skip locked)
with picked as materialized (
  select job_done.id
  from {schema}.job_done
  join {schema}.job_body on job_body.id = job_done.id
  where job_done.state = 'dead'
    and ($1::bigint[] is null or job_done.id = any ($1))
    and ($2::text is null or job_done.queue = $2)
    and ($3::text is null or job_body.kind = $3)
    and ($4::text is null or job_done.code = $4)
  order by job_done.id
  limit $5
  for update of job_done skip locked
), gone as (
  delete from {schema}.job_done
  where job_done.id = any (array(select id from picked))
  returning job_done.id, job_done.epoch
), back as (
  insert into {schema}.job (id, due_at, epoch, max_attempts, priority, queue)
  select
    gone.id,
    clock_timestamp(),
    gone.epoch,
    job_body.max_attempts,
    job_body.priority,
    job_body.queue
  from gone
  join {schema}.job_body on job_body.id = any (array(select id from picked)) and job_body.id = gone.id
  returning job.id, job.queue
)
select
  id,
  queue
from back
order by id
