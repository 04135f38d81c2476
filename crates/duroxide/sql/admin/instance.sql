-- Instance $1 and its current execution.
-- locks:  nothing
select
  i.name,
  i.version,
  i.current_execution_id,
  i.parent_instance_id,
  (extract(epoch from i.created_at) * 1000)::bigint as created_ms,
  (extract(epoch from i.updated_at) * 1000)::bigint as updated_ms,
  e.status,
  e.output
from {schema}.instance i
left join {schema}.execution e on e.instance_id = i.instance_id and e.execution_id = i.current_execution_id
where i.instance_id = $1
