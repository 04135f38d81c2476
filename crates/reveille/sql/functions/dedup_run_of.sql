-- The message that brought a growing key to a partition within its window, if there was one. Written so that it becomes part
-- of the statement that calls it.
-- locks: nothing
create or replace function {schema}.dedup_run_of(in_partition int, in_key uuid)
returns table (id uuid)
language sql
stable
as $reveille$
  select seen.ids[coalesce(array_position(seen.keys, in_key), 1)]
  from {schema}.dedup_run as seen
  where seen.partition = in_partition
    and seen.high >= in_key
    and seen.high <= {schema}.dedup_reach(in_key)
    and seen.low <= in_key
    and seen.until > clock_timestamp()
    and in_key = any (coalesce(seen.keys, array[seen.high]))
  limit 1
$reveille$;

comment on function {schema}.dedup_run_of(int, uuid) is 'Reveille: which message brought a growing transaction id';
