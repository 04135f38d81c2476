-- Remove what is left of the deleted queue $1, at most about $2 rows of a kind, and say how many
-- rows that were: zero when nothing is left. Heads go first: a push that is under way ends before,
-- and none begins after.
-- locks:  the heads, ascending; then the rows
select {schema}.remove_leftovers($1::int, $2::int) as removed
