-- Lock up to $2 unique keys after key $1, in order.
-- locks:  the keys (skip locked: a locked one is in use)
select key
from {schema}.job_unique
where key > $1
order by key
limit $2
for update skip locked
