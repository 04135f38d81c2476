-- Mark partitions of the queues $1 ready that have new messages since $2.
-- locks:  cursors ascending, then partition rows skipping locked ones
select {schema}.mark_ready($1::int[], $2::timestamptz) as partitions
