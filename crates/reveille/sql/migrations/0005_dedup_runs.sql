-- Transaction ids that grow (UUIDs of version 7) are remembered by the run: one row for what a push brings, not one for each.
-- locks: dedup, while the ids it holds move over
-- Whoever reads or writes holds the head of the partition, and looks in a statement that began after it was taken: so two
-- pushers cannot both find that an id is new, and no unique index has to say so.

create table {schema}.dedup_run (
  partition int not null,
  -- The least and the greatest of its keys; they are no more than dedup_reach allows apart.
  low uuid not null,
  high uuid not null,
  -- Null when there is one, which is both.
  keys uuid[],
  ids uuid[] not null,
  until timestamptz not null
) with (autovacuum_vacuum_insert_scale_factor = 0, autovacuum_vacuum_insert_threshold = 1000000, toast_tuple_target = 8160);
alter table {schema}.dedup_run alter keys set storage external, alter ids set storage external;
create index dedup_run_high on {schema}.dedup_run (partition, high);
create index dedup_run_until on {schema}.dedup_run using brin (until) with (pages_per_range = 16);

lock table {schema}.dedup in share row exclusive mode;
with moved as (
  delete from {schema}.dedup where substr(dedup.key::text, 15, 1) = '7' returning *
)
insert into {schema}.dedup_run (partition, low, high, ids, until)
select moved.partition, moved.key, moved.key, array[moved.id], moved.until
from moved;
