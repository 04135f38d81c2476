-- Create the group $2 of queue $1, beginning as $3 says, from $4. Returns nothing if the queue is
-- gone, and no id if it has $5 groups already. With more than $6 partitions the group is only
-- begun, and `through` says up to which partition its cursors are to be created.
-- locks:  the queue's row
select made.grp, made.through
from {schema}.register($1::int, $2::text, $3::text, $4::timestamptz, $5::int, $6::int) as made
