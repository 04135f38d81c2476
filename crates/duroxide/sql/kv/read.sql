-- The values of instance $1, of key $2 or, if that is null, of all: as the current execution has
-- them.
-- locks:  nothing
select
  coalesce(d.key, s.key) as key,
  case when d.key is null then s.value else d.value end as value
from (
  select key, value from {schema}.kv_store where instance_id = $1 and ($2::text is null or key = $2)
) as s
full join (
  select key, value from {schema}.kv_delta where instance_id = $1 and ($2::text is null or key = $2)
) as d on d.key = s.key
where d.key is null
   or d.value is not null
