-- The custom status of instance $1, if it is newer than version $2.
-- locks:  nothing
-- plan:   index scan using instance_pkey
select
  custom_status,
  custom_status_version
from {schema}.instance
where instance_id = $1
  and custom_status_version > $2
