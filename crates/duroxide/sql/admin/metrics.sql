-- How many instances, executions and events there are.
-- locks:  nothing
select
  count(*) as instances,
  count(*) filter (where e.status = 'Running') as running,
  count(*) filter (where e.status = 'Completed') as completed,
  count(*) filter (where e.status = 'Failed') as failed,
  (select count(*) from {schema}.execution) as executions,
  (select coalesce(sum(event_count), 0)::bigint from {schema}.execution) as events
from {schema}.instance i
left join {schema}.execution e on e.instance_id = i.instance_id and e.execution_id = i.current_execution_id
