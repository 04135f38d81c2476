-- Forget transaction ids whose window is over, at most $1 of them. Returns how many.
-- locks:  the rows, skipping locked ones: a push may be about to use one again
with doomed as materialized (
  select dedup.partition, dedup.key
  from {schema}.dedup
  where dedup.until <= clock_timestamp()
  limit $1::bigint
  for update skip locked
), gone as (
  delete from {schema}.dedup
  using doomed
  where dedup.partition = doomed.partition and dedup.key = doomed.key
  returning 1
)
select count(*) as rows
from gone
