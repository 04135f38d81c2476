-- Take the ids of the next $1 jobs, and read the clock by which they are due.
-- locks:  nothing
select
  array_agg(nextval(sequence.tableoid::regclass)) as ids,
  clock_timestamp() as now
-- A sequence is a table of one row, which knows its own name: as a text, that could not be quoted for every schema.
from {schema}.job_body_id_seq as sequence
cross join generate_series(1, $1::bigint)
