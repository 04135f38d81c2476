-- The log itself remembers transaction ids that grow: it holds them anyway. A head knows the greatest of them, so that most pushes see
-- at once that theirs are new; spans tell which stretch of the log holds others. dedup_run is left for ids that do not come in the order
-- of their making or come by SQL, and for those whose segments went before their window was over.
-- locks: the heads, exclusively, for a moment

alter table {schema}.head
  -- The greatest key that grows, of all messages before key_seq. A node of the version before moves next_seq on without it.
  add column key_high uuid,
  add column key_seq bigint not null default 1,
  -- The stretch that is still open: where it begins, where the last of its keys lies, and the least and greatest of them; null while
  -- there is none.
  add column span_from bigint,
  add column span_to bigint,
  add column span_low uuid,
  add column span_high uuid;

-- A stretch of a partition's log, and the least and greatest of its keys that came in order. A later stretch has greater keys: no two of
-- a partition overlap. Whoever looks something up or adds one holds the head.
create table {schema}.dedup_span (
  partition int not null,
  low uuid not null,
  high uuid not null,
  first_seq bigint not null,
  last_seq bigint not null,
  until timestamptz not null
) with (autovacuum_vacuum_insert_scale_factor = 0, autovacuum_vacuum_insert_threshold = 1000000);
create index dedup_span_high on {schema}.dedup_span (partition, high);
create index dedup_span_until on {schema}.dedup_span using brin (until) with (pages_per_range = 16);
-- For whoever publishes all tables, as in the migration before.
alter table {schema}.dedup_span replica identity full;
