-- Move the cursors of group $1 in partition $2 (null for all), above $3, at most $4, to the
-- position $5: see functions/seek.sql.
-- locks:  the cursors, ascending
select sought.partition, sought.committed, sought.clamped, sought.more
from {schema}.seek($1::int, $2::int, $3::int, $4::int, $5::text, $6::timestamptz, $7::bigint) as sought
