-- Make the begun group $1 known, whose cursors were made up to partition $2 and some beyond. False
-- when its queue is gone.
-- locks:  the queue's row; the group's row; the new cursors, ascending
select {schema}.finish_group($1::int, $2::int) as known
