-- Make the group $2 of queue $1 known, beginning as $3 says, from $4; null when the queue is gone.
-- locks:  the queue's row
select {schema}.register($1::int, $2::text, $3::text, $4::timestamptz) as grp
