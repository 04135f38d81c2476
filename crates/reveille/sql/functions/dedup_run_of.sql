-- The message that brought a growing key to a partition within its window, if there was one. Only nodes of the version before ask for it; it
-- goes with the next one.
-- locks: nothing
create or replace function {schema}.dedup_run_of(in_partition int, in_key uuid)
returns table (id uuid)
language sql
stable
as $reveille$
  select seen.id from {schema}.growing_seen(array[in_partition], array[in_key]) as seen
$reveille$;

comment on function {schema}.dedup_run_of(int, uuid) is 'Reveille: which message brought a growing transaction id';
