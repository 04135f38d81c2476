-- The wake engine: the processes that are to be told when there is work, one row each, refreshed by
-- its heartbeat.
-- locks: nothing that exists
create table {schema}.node (
  id bigint primary key,
  name text not null,
  started_at timestamptz not null default clock_timestamp(),
  beat_at timestamptz not null
) with (fillfactor = 50, autovacuum_vacuum_threshold = 50, autovacuum_vacuum_scale_factor = 0);
