-- Take up to $2 unique keys after key $1, in order.
-- locks:  the keys (skip locked: whoever has one in hand is using it)
select key
from {schema}.job_unique
where key > $1
order by key
limit $2
for update skip locked
