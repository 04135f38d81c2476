-- When each chore was done last, what it did, and when it is due.
-- locks:  nothing
select chore.name, chore.done_at, extract(epoch from chore.next_at - clock_timestamp())::float8 as due_s,
       chore.figures::text as figures
from {schema}.chore
order by chore.name
