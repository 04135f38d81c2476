-- The number of dead letters, by the filters $1 to $6 of functions/dead_letters.sql.
-- locks:  nothing
select count(*) as total
from {schema}.dead_letters($1::text, $2::text, $3::text, $4::timestamptz, $5::timestamptz, $6::text)
