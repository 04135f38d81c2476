-- Create cursors of the begun group $1 in partitions above $2, at most $4 of them. In those up to
-- $3 it begins as its subscription says. Returns the last partition; null at the end.
-- locks:  the new cursors, ascending
select {schema}.make_cursors($1::int, $2::int, $3::int, $4::int) as last
