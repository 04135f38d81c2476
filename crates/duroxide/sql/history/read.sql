-- The events of instance $1, of execution $2 or, if that is null, of the latest.
-- locks:  nothing
-- plan:   index scan using history_pkey
select event
from {schema}.history
where instance_id = $1
  and execution_id = coalesce(
    $2,
    (select max(execution_id) from {schema}.execution where instance_id = $1),
    1
  )
order by event_id
