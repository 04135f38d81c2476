-- The custom status of instance $1 and its version.
-- locks:  nothing
-- plan:   index scan using instance_pkey
select
  custom_status,
  custom_status_version
from {schema}.instance
where instance_id = $1
