-- When each upkeep task was done last, what it did, and when it is due.
-- locks:  nothing
select upkeep.name, upkeep.done_at, extract(epoch from upkeep.next_at - clock_timestamp())::float8 as due_s,
       upkeep.figures::text as figures
from {schema}.upkeep
order by upkeep.name
