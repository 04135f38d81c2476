-- The log itself remembers transaction ids that grow: it holds them anyway. A head knows the greatest of them, so that most pushes see
-- at once that theirs are new; spans tell which stretch of the log may hold others. dedup_run is left for ids whose segments went
-- before their window was over.
-- locks: the heads, exclusively, while those that have such ids are written

alter table {schema}.head
  -- The greatest key that grows, of all that were pushed.
  add column key_high uuid,
  -- The stretch that is still open: where it begins, and the least and greatest of its keys; null while there is none.
  add column span_from bigint,
  add column span_low uuid,
  add column span_high uuid;

-- A stretch of a partition's log with the least and the greatest key that grows in it. Whoever reads or writes holds the head.
create table {schema}.dedup_span (
  partition int not null,
  low uuid not null,
  high uuid not null,
  first_seq bigint not null,
  last_seq bigint not null,
  until timestamptz not null
) with (autovacuum_vacuum_insert_scale_factor = 0, autovacuum_vacuum_insert_threshold = 1000000);
create index dedup_span_high on {schema}.dedup_span (partition, high, low);
create index dedup_span_until on {schema}.dedup_span using brin (until) with (pages_per_range = 16);
-- For whoever publishes all tables, as in the migration before.
alter table {schema}.dedup_span replica identity full;

update {schema}.head
set key_high = seen.high
from (
  select distinct on (dedup_run.partition) dedup_run.partition, dedup_run.high
  from {schema}.dedup_run
  order by dedup_run.partition, dedup_run.high desc
) as seen
where head.partition = seen.partition;
