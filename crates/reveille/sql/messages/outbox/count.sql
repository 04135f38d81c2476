-- How many pushes wait in the outbox, counted up to a million.
-- locks: nothing
select count(*)
from (select from {schema}.outbox limit 1000000) as waiting
