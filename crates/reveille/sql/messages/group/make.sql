-- Make the group $2 of queue $1 known, beginning as $3 says, from $4. Nothing when the queue is
-- gone; no id when it has $5 groups already. With more than $6 partitions the group is only begun,
-- and `through` says up to which partition its cursors are to be made.
-- locks:  the queue's row
select made.grp, made.through
from {schema}.register($1::int, $2::text, $3::text, $4::timestamptz, $5::int, $6::int) as made
