-- Up to $3 dead jobs after id $2, of queue $1 or of any, in the order of their ids.
-- locks:  nothing
select
  job_done.id,
  job_body.kind,
  job_done.queue,
  job_done.attempt,
  coalesce(job_done.code, 'failed') as code,
  coalesce(job_done.reason, '') as reason,
  extract(epoch from clock_timestamp() - job_done.finished_at)::float8 as ago_s,
  job_body.args
from {schema}.job_done
join {schema}.job_body on job_body.id = job_done.id
where job_done.state = 'dead'
  and ($1::text is null or job_done.queue = $1)
  and job_done.id > $2
order by job_done.id
limit $3
