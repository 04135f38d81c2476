-- Take the ids of the next $1 jobs, and read the clock by which they are due.
-- locks:  nothing
select
  pg_catalog.array_agg(pg_catalog.nextval(sequence.tableoid::regclass)) as ids,
  pg_catalog.clock_timestamp() as now
-- A sequence is a table of one row, which knows its own name: as a text, that could not be quoted
-- for every schema.
from {schema}.job_body_id_seq as sequence
cross join pg_catalog.generate_series(1, $1::bigint)
