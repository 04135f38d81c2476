-- The events of instance $1, of execution $2 or, if that is null, of the latest; and last its
-- custom status, which a client reads next.
-- locks:  nothing
-- plan:   index scan using history_pkey
select
  event_id,
  event,
  null::text as custom_status,
  null::bigint as custom_status_version
from {schema}.history
where instance_id = $1
  and execution_id = coalesce(
    $2,
    (select max(execution_id) from {schema}.execution where instance_id = $1),
    1
  )
union all
select
  null,
  null,
  custom_status,
  custom_status_version
from {schema}.instance
where instance_id = $1
order by 1
