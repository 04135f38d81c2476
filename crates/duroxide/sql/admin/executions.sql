-- The executions of instance $1, oldest first; only number $2, if it is given.
-- locks:  nothing
select
  execution_id,
  status,
  output,
  event_count,
  (extract(epoch from started_at) * 1000)::bigint as started_ms,
  (extract(epoch from completed_at) * 1000)::bigint as completed_ms
from {schema}.execution
where instance_id = $1
  and ($2::bigint is null or execution_id = $2)
order by execution_id
