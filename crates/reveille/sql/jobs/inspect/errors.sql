-- The errors of the last twenty failed attempts of job $1, the earliest first.
-- locks:  nothing
select
  attempt,
  code,
  message,
  worker,
  extract(epoch from clock_timestamp() - at)::float8 as ago_s
from (
  select
    job_error.id,
    job_error.attempt,
    job_error.code,
    job_error.message,
    job_error.worker,
    job_error.at
  from {schema}.job_error
  where job_error.job = $1
  order by job_error.id desc
  limit 20
) as latest
order by id
