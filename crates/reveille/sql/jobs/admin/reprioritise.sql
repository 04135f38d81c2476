-- Give job $1, which waits, if only since the end of its lease, the priority $2. Returns its queue,
-- or nothing when it does not wait.
-- locks:  the job, then its body
-- plan:   index scan using job_pkey
with changed as (
  update {schema}.job
  set priority = $2
  where id = $1
    and (nonce is null or due_at <= clock_timestamp())
  returning id, queue
), body as (
  update {schema}.job_body
  set priority = $2
  where id = (select id from changed)
)
select queue
from changed
