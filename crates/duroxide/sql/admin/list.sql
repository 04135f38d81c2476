-- The instances, newest first; only those whose execution has status $1, if it is given.
-- locks:  nothing
select i.instance_id
from {schema}.instance i
left join {schema}.execution e on e.instance_id = i.instance_id and e.execution_id = i.current_execution_id
where $1::text is null
   or e.status = $1
order by i.created_at desc, i.instance_id
