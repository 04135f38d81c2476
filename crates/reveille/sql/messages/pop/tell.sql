-- Tell the cursors of the queues $1 what was pushed.
-- locks:  cursors ascending, then heads skipping locked ones
select {schema}.spread($1::int[]) as partitions
