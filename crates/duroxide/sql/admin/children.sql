-- The instances whose parent is $1.
-- locks:  nothing
-- plan:   index scan using instance_parent
select instance_id
from {schema}.instance
where parent_instance_id = $1
order by instance_id
