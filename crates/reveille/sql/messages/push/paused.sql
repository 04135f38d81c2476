-- Whether pushes are paused.
-- locks:  nothing
select switch.engaged
from {schema}.switch
where switch.name = 'push_paused'
