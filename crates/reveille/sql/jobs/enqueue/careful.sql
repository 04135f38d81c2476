-- Enqueue jobs, unique ones among them, or in a transaction of the caller's: see the function for
-- the parameters; the times $5 are in seconds since 1970. Returns for each item its id, and whether
-- it is that of an existing job. Names are written with their schema, because the caller's session
-- may have another search path.
-- locks:  unique keys ascending, then the jobs that have them
select
  id,
  existing
from {schema}.enqueue_items(
  $1, $2, $3, $4,
  (
    select pg_catalog.array_agg(pg_catalog.to_timestamp(given.at) order by given.place)
    from pg_catalog.unnest($5::float8[]) with ordinality as given (at, place)
  ),
  $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16
)
order by place
