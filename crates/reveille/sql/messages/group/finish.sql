-- Make the begun group $1 known to its queue, after its cursors were created up to partition $2 and
-- in some beyond. False if its queue is gone.
-- locks:  the queue's row; the group's row; the new cursors, ascending
select {schema}.finish_group($1::int, $2::int) as known
