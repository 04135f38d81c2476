-- Delete up to $1 ended jobs that need not be kept any more. Returns how many.
-- locks:  the ended jobs (skip locked), then their bodies and errors
with picked as materialized (
  select id
  from {schema}.job_done
  where keep_until <= clock_timestamp()
  order by keep_until
  limit $1
  for update skip locked
), gone as (
  delete from {schema}.job_done
  where id = any (array(select id from picked))
  returning id
), bodies as (
  delete from {schema}.job_body
  where id = any (array(select id from picked))
), errors as (
  delete from {schema}.job_error
  where job = any (array(select id from picked))
)
select count(*) as swept
from gone
