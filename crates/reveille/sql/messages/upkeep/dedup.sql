-- Forget transaction ids whose window is over, at most $1 of them, and $1 runs and spans of them.
-- Returns how many rows these were.
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
), runs as (
  delete from {schema}.dedup_run
  where dedup_run.ctid = any (array(
    select old.ctid from {schema}.dedup_run as old where old.until <= clock_timestamp() limit $1::bigint
  ))
  returning 1
), spans as (
  delete from {schema}.dedup_span
  where dedup_span.ctid = any (array(
    select old.ctid from {schema}.dedup_span as old where old.until <= clock_timestamp() limit $1::bigint
  ))
  returning 1
)
select (select count(*) from gone) + (select count(*) from runs) + (select count(*) from spans) as rows
