-- Take the heads of the partitions $1, ascending; returns those that exist.
-- locks:  the heads, ascending
-- plan:   index scan using head_pkey
select head.partition
from {schema}.head
where head.partition = any ($1::int[])
order by head.partition
for update
