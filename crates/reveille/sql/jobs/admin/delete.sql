-- Delete job $1, unless it runs; after the end of its lease it does not. Returns its id, or nothing
-- when it runs or is not there.
-- locks:  the job, how it ended, its body, its errors
with waiting as (
  delete from {schema}.job
  where id = $1
    and (nonce is null or due_at <= clock_timestamp())
  returning id
), ended as (
  delete from {schema}.job_done
  where id = $1
  returning id
), either as (
  select id from waiting
  union all
  select id from ended
), body as (
  delete from {schema}.job_body
  where id = (select id from either)
), errors as (
  delete from {schema}.job_error
  where job = (select id from either)
)
select id
from either
