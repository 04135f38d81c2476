-- The switches, and whether each is on.
-- locks:  nothing
select switch.name, switch.engaged
from {schema}.switch
