-- The dead letters above $7, the oldest first, at most $8, by the filters $1 to $6 of
-- functions/dead_letters.sql. With $9 those whose group is gone are left out.
-- locks:  nothing
select letter.id
from {schema}.dead_letters($1::text, $2::text, $3::text, $4::timestamptz, $5::timestamptz, $6::text) as letter
where letter.id > $7::bigint
  and (not $9::boolean or letter.consumer is not null)
order by letter.id
limit $8::bigint
