-- Remove the remaining rows of the deleted queue $1, at most about $2 of each table, and return how
-- many these were: zero when none is left. Partition rows go first: a push that is under way ends
-- before, and none begins after.
-- locks:  the partition rows, ascending; then the rows
select {schema}.remove_leftovers($1::int, $2::int) as removed
