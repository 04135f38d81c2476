-- Tell the cursors of the queues $1 what was pushed and is fresh since $2.
-- locks:  cursors ascending, then heads skipping locked ones
select {schema}.mark_ready($1::int[], $2::timestamptz) as partitions
