-- Make cursors of the begun group $1 in partitions above $2, at most $4 of them; it begins as it
-- said in those up to $3. Returns the last one; null at the end.
-- locks:  the new cursors, ascending
select {schema}.make_cursors($1::int, $2::int, $3::int, $4::int) as last
