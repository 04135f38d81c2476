-- What went wrong with job $1, the earliest first.
-- locks:  nothing
select
  attempt,
  code,
  message,
  worker,
  extract(epoch from clock_timestamp() - at)::float8 as ago_s
from {schema}.job_error
where job = $1
order by id
